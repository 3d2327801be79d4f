"""What runs as the first process of a box. Standard library only: every module here is part of every box's memory."""

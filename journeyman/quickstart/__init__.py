"""The quickstart: all services as processes of this machine, and the pipeline that trains a model through them."""

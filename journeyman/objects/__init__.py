"""Object stores behind one port."""

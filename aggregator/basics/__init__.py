"""What every room may use: one small concept a module, without dependencies of ours."""

"""The paper's tables, each as one command: what is trained, how it is measured, and the paper's figures beside it."""

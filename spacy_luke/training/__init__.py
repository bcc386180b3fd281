"""The training loop of components, which resumes bit for bit; the number of steps that the data give."""

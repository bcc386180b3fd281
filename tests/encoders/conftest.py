import torch

torch.set_num_threads(1)  # tiny models: threads that wait for one another on a busy machine take forty times as long

"""The GPU that the tests of this folder run on: this machine's first, or where there is none a pretended one."""

import torch

if torch.cuda.is_available():
    from tests.gpu.real import RealGPU as GPU
    from tests.gpu.real import module_to_gpu, to_gpu
else:
    from tests.gpu.pretended import PretendedGPU as GPU
    from tests.gpu.pretended import module_to_gpu, to_gpu

__all__ = ["GPU", "module_to_gpu", "to_gpu"]

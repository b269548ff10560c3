"""FSDP2 and a device mesh as docs/howto/pytorch.md shows them, under torchrun: prints what rank 0 has in the end."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("catchment")
mesh = init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("replicate", "shard"))
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
for layer in model:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
torch.manual_seed(1 + dist.get_rank())
for step in range(20):
    x = torch.randn(32, 64)
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    dist.all_reduce(loss.detach(), dist.ReduceOp.AVG)
    if dist.get_rank() == 0 and step % 19 == 0:
        print("loss", loss.item(), flush=True)
norm = torch.cat([p.full_tensor().detach().reshape(-1) for p in model.parameters()]).double().norm()
print(f"rank {dist.get_rank()}: norm {norm.item().hex()}", flush=True)
dist.destroy_process_group()

"""Samples of the ops of the 2.6 tree that no OpInfo reaches: the fused optimizer steps."""

import torch


def samples(dtype):
    """Steps of each fused optimizer; beside the parameters every state is as after some steps."""
    for sizes in (((3, 5), (7,)), ((130,), (1, 2, 3)), ((1,),)):
        for amsgrad in (False, True):
            for maximize in (False, True):
                for step in (torch._fused_adam_, torch._fused_adamw_):
                    yield lambda step=step, sizes=sizes, amsgrad=amsgrad, maximize=maximize: step(
                        *_lists(5, sizes, dtype),
                        _steps(sizes),
                        lr=0.01,
                        beta1=0.9,
                        beta2=0.99,
                        weight_decay=0.02,
                        eps=1e-3,
                        amsgrad=amsgrad,
                        maximize=maximize,
                    )
        for momentum, nesterov in ((0.0, False), (0.9, False), (0.9, True)):
            yield lambda sizes=sizes, momentum=momentum, nesterov=nesterov: torch._fused_sgd_(
                *_lists(3, sizes, dtype),
                weight_decay=0.02,
                momentum=momentum,
                lr=0.01,
                dampening=0.0,
                nesterov=nesterov,
                maximize=False,
                is_first_step=False,
            )


def _lists(count, sizes, dtype):
    return [[torch.rand(one).to(dtype) for one in sizes] for _ in range(count)]


def _steps(sizes):
    return [torch.tensor(3.0) for _ in sizes]


REFERENCES = {}

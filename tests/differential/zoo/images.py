"""What looks at images: classification, segmentation, detection."""

# TorchScript reads these annotations from the source: no `from __future__ import annotations` here.

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn
F: Any = torch.nn.functional


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.down = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += self.down(x)
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(True), nn.MaxPool2d(3, 2, 1))
        self.stages = nn.ModuleList([Residual(8, 8), Residual(8, 16, 2)])
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
        return self.head(torch.flatten(self.pool(x), 1))


class InvertedResidual(nn.Module):
    """Depthwise convolutions, hard activations, squeeze and excitation."""

    def __init__(self) -> None:
        super().__init__()
        self.expand = nn.Conv2d(4, 12, 1)
        self.depth = nn.Conv2d(12, 12, 5, padding=2, groups=12)
        self.squeeze = nn.Conv2d(12, 3, 1)
        self.excite = nn.Conv2d(3, 12, 1)
        self.project = nn.Conv2d(12, 4, 1)

    def forward(self, x):
        y = F.hardswish(self.depth(F.hardswish(self.expand(x), inplace=True)), inplace=True)
        scale = F.adaptive_avg_pool2d(y, 1)
        scale = F.hardsigmoid(self.excite(F.relu6(self.squeeze(scale))))
        return x + self.project(y * scale)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(2, 4, 3, 2, 1)
        self.middle = nn.Sequential(nn.Conv2d(4, 4, 3, 1, 1), nn.GroupNorm(2, 4), nn.SiLU(), nn.InstanceNorm2d(4))
        self.up = nn.ConvTranspose2d(4, 2, 4, 2, 1)
        self.out = nn.Conv2d(4, 1, 1)

    def forward(self, x):
        y = self.up(self.middle(self.down(x)))
        dy = x.size(2) - y.size(2)
        dx = x.size(3) - y.size(3)
        y = F.pad(y, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        y = F.interpolate(y, size=[x.shape[2], x.shape[3]], mode="bilinear", align_corners=False)
        return torch.sigmoid(self.out(torch.cat([x, y], dim=1)))


class Sampler(nn.Module):
    def forward(self, x, grid):
        y = F.grid_sample(x, grid, align_corners=False)
        z = F.pixel_shuffle(x, 2)
        w = F.unfold(x, [2, 2], stride=[2, 2])
        v = F.interpolate(x, scale_factor=2.0, mode="nearest") + F.interpolate(x, scale_factor=2.0, mode="bicubic")
        return y, z, w, F.avg_pool2d(v, 2, ceil_mode=True), F.log_softmax(x, 1)


class Boxes(nn.Module):
    """Decoding in place, a threshold, and suppression of what overlaps."""

    def forward(self, raw):
        x = raw.clone()
        x[..., :2].sigmoid_()
        x[..., 2:4].exp_().clamp_(max=4.0)
        corners = torch.cat([x[..., :2] - x[..., 2:4] / 2, x[..., :2] + x[..., 2:4] / 2], -1)
        scores = x[..., 4].sigmoid()
        order = scores.argsort(descending=True)
        corners = corners[order]
        area = (corners[:, 2:] - corners[:, :2]).prod(1)
        low = torch.max(corners[:, None, :2], corners[None, :, :2])
        high = torch.min(corners[:, None, 2:], corners[None, :, 2:])
        shared = (high - low).clamp(min=0).prod(2)
        overlap = shared / (area[:, None] + area[None, :] - shared)
        keep = torch.ones(corners.size(0), dtype=torch.bool)
        for i in range(corners.size(0)):
            if bool(keep[i]):
                keep[i + 1 :] &= overlap[i, i + 1 :] < 0.3
        return corners[keep], torch.nonzero(keep).squeeze(1), order

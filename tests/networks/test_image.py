"""Convolutions: sizes, how bytes are read, and which images are too small."""

import pytest
import torch

from operant.core.errors import UsageError
from operant.networks.image import ConvNet, NatureCNN, SmallCNN


def test_nature_has_the_sizes_of_its_paper() -> None:
    net = NatureCNN((4, 84, 84))
    assert sum(p.numel() for p in net.parameters()) == 1_684_128
    assert net.output_shape() == (512,)


def test_small_reads_a_minatar_image() -> None:
    net = SmallCNN((4, 10, 10))
    y, _ = net(torch.rand(2, 4, 10, 10) < 0.5, {})
    assert tuple(y.shape) == (2, *net.output_shape()) == (2, 128)


def test_without_a_size_the_output_is_an_image() -> None:
    net = ConvNet((2, 9, 7), ((3, 3, 2), (5, 2, 1)))
    y, _ = net(torch.rand(1, 2, 9, 7), {})
    assert tuple(y.shape[1:]) == net.output_shape() == (5, 3, 2)


def test_bytes_are_fractions_of_255() -> None:
    net = SmallCNN((1, 4, 4))
    image = torch.randint(0, 256, (3, 1, 4, 4), dtype=torch.uint8)
    torch.testing.assert_close(net(image, {})[0], net(image.float() / 255, {})[0])


def test_truth_is_one() -> None:
    net = SmallCNN((1, 4, 4))
    image = torch.rand(3, 1, 4, 4) < 0.5
    assert torch.equal(net(image, {})[0], net(image.float(), {})[0])


def test_36_pixels_are_enough_for_nature_and_35_name_the_remedy() -> None:
    assert NatureCNN((1, 36, 36)).output_shape() == (512,)
    with pytest.raises(UsageError, match=r"36x35 is too small.*SmallCNN"):
        NatureCNN((1, 36, 35))

"""The models whose weights are loaded."""
import torch


def shape(bytes, parameters_per_square):
    """Width and number of layers of a model of bfloat16 with about that many bytes, if a layer has
    parameters_per_square times the square of its width."""
    for width in 2048, 1024, 512, 256, 128, 64:
        layers = bytes // (2 * parameters_per_square * width * width)
        if layers >= 2:
            return width, layers
    return 64, 2


def encoder(bytes):
    width, layers = shape(bytes, parameters_per_square=12)  # 4 projections, and 2 of four times the width
    layer = torch.nn.TransformerEncoderLayer(width, nhead=8, dim_feedforward=4 * width, batch_first=True)
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

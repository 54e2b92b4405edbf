"""The two operations, written a second time: in numpy, from their formulas, and from no other code of this project.

Every function returns the outputs and, beside each, its *majorant*: a number of the size of the largest terms that were
added up to get it. Correct computations in float64 agree within a small multiple of 2^-53 times the majorant, whatever
their order; the tests ask for 1e-12 of it.
"""

import numpy as np


def recurrence(q, k, v, gate, beta, initial_state=None, dtype=np.float64):
    """S_t = gate_t S_{t-1} + beta_t k_t v_t^T,  y_t = q_t^T S_t.

    q, k [B,T,H,K]; v [B,T,H,V]; gate, beta [B,T,H]; initial_state [B,H,K,V] or nothing, which is zero.
    Returns ({"y": [B,T,H,V], "final_state": [B,H,K,V]}, their majorants): the majorant is the same recurrence on
    absolute values.
    """
    outputs = _recurrence(q, k, v, gate, beta, initial_state, dtype, lambda array: array)
    majorants = _recurrence(q, k, v, gate, beta, initial_state, np.float64, np.abs)
    return outputs, majorants


def _recurrence(q, k, v, gate, beta, initial_state, dtype, sign):
    q, k, v, gate, beta = (sign(np.asarray(array, dtype)) for array in (q, k, v, gate, beta))
    B, T, H, K = q.shape
    V = v.shape[-1]
    state = np.zeros((B, H, K, V), dtype) if initial_state is None else sign(np.asarray(initial_state, dtype))
    y = np.empty((B, T, H, V), dtype)
    for t in range(T):
        write = (beta[:, t, :, None] * k[:, t])[..., :, None] * v[:, t, :, None, :]
        state = gate[:, t, :, None, None] * state + write
        y[:, t] = (q[:, t, :, :, None] * state).sum(axis=2)
    return {"y": y, "final_state": state}


def axial(tensors, heads, eps=1e-5, passes="both", row=None, dtype=np.float64):
    """Row pass along W, then column pass along H, of the block

        n = LayerNorm(x);  [Q K V] = n W_qkv^T;  o_h = softmax(Q_h K_h^T / sqrt(d)) V_h;  x <- x + o W_out^T + b_out

    tensors: "x" [B,H,W,D] and, for "row" and "col", "*_norm.weight", "*_norm.bias", "*_qkv.weight", "*_out.weight",
    "*_out.bias". Returns ({"y": [B,H,W,D]}, their majorants), with "row" beside "y" when both passes run. With `row`,
    the result of somebody's row pass, y is the column pass of that very array.
    """
    x = np.asarray(tensors["x"], dtype)
    size = np.abs(x)
    outputs, majorants = {}, {}
    if passes in ("both", "row"):
        x, size = _pass(x, size, tensors, "row", heads, eps, dtype)
        if passes == "both":
            outputs["row"], majorants["row"] = x, size
            if row is not None:
                x = np.asarray(row, dtype)
                size = np.abs(x)
    if passes in ("both", "col"):
        # Tokens of a column become neighbours, and go back.
        x, size = _pass(x.swapaxes(1, 2), size.swapaxes(1, 2), tensors, "col", heads, eps, dtype)
        x, size = x.swapaxes(1, 2), size.swapaxes(1, 2)
    outputs["y"], majorants["y"] = x, size
    return outputs, majorants


def _pass(x, size, tensors, name, heads, eps, dtype):
    """One pass over sequences [..., L, D]: the result and its majorant.

    Names that end in _size are majorants. A sum of products has the sum of the products of absolute values, beside what
    its terms bring along; LayerNorm and softmax pass on by their derivatives what comes to them. With zero for what comes
    in, and sums alone, this is the formula on absolute values.
    """
    weight, bias, qkv, out, out_bias = (
        np.asarray(tensors[f"{name}_{part}"], dtype)
        for part in ("norm.weight", "norm.bias", "qkv.weight", "out.weight", "out.bias")
    )
    D = x.shape[-1]
    d = D // heads

    mean = x.mean(axis=-1, keepdims=True, dtype=dtype)
    deviation = x - mean
    variance = (deviation * deviation).mean(axis=-1, keepdims=True, dtype=dtype)
    scale = 1 / np.sqrt(variance + dtype(eps))
    unit = deviation * scale
    n = unit * weight + bias
    # dn = weight * scale * (dx - mean(dx) - unit * mean(unit * dx))
    n_size = np.abs(weight * scale) * (
        size + _mean(size) + np.abs(unit) * _mean(np.abs(unit) * size)
    ) + np.abs(n) + np.abs(bias)

    def split(projected):
        """[..., L, 3D] as Q, K, V of [..., heads, L, d]."""
        parts = np.split(projected, 3, axis=-1)
        return [part.reshape(*part.shape[:-1], heads, d).swapaxes(-2, -3) for part in parts]

    query, key, value = split(n @ qkv.T)
    query_size, key_size, value_size = split(n_size @ np.abs(qkv.T))

    keys = key.swapaxes(-1, -2)
    logits = (query @ keys) / np.sqrt(dtype(d))
    logits_size = (query_size @ np.abs(keys) + np.abs(query) @ key_size.swapaxes(-1, -2)) / np.sqrt(d)
    below_largest = logits - logits.max(axis=-1, keepdims=True)
    weights = np.exp(below_largest.astype(np.float64)).astype(dtype)
    weights = weights / weights.sum(axis=-1, keepdims=True, dtype=dtype)
    attended = weights @ value
    # d(weights) = weights * (dz - sum(weights * dz))
    logits_size = logits_size - below_largest
    weights_size = weights * (logits_size + (weights * logits_size).sum(axis=-1, keepdims=True))
    attended_size = weights_size @ np.abs(value) + weights @ value_size

    def merge(by_head):
        """[..., heads, L, d] as [..., L, D]."""
        by_token = by_head.swapaxes(-2, -3)
        return by_token.reshape(*by_token.shape[:-2], D)

    y = x + (merge(attended) @ out.T + out_bias)
    y_size = size + merge(attended_size) @ np.abs(out.T) + np.abs(out_bias)
    return y, y_size


def _mean(array):
    return array.mean(axis=-1, keepdims=True)


INPUTS = {
    "recurrence": ["q", "k", "v", "gate", "beta", "initial_state"],
    "axial": ["x"]
    + [f"{name}_{part}" for name in ("row", "col") for part in ("norm.weight", "norm.bias", "qkv.weight", "out.weight", "out.bias")],
}


def outputs_of(metadata, tensors, row=None, dtype=np.float64):
    """Outputs and majorants of the problem that a file holds; `row` as in `axial`."""
    operation = metadata["gaugeblock.op"]
    inputs = {name: tensors[name] for name in INPUTS[operation] if name in tensors}
    if operation == "recurrence":
        return recurrence(**inputs, dtype=dtype)
    return axial(
        inputs,
        heads=int(metadata["gaugeblock.heads"]),
        eps=np.float32(metadata.get("gaugeblock.eps", "1e-05")),  # the attribute is a float32 number
        passes=metadata.get("gaugeblock.passes", "both"),
        row=row,
        dtype=dtype,
    )

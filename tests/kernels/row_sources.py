"""Kernel functions of rows, as text."""

SOFTMAX = """def @softmax[N: Dim, M: Dim](%x: Tensor[(N, M), float32]) {
    let %m = amax(%x, dim=(1,), keepdim=True);
    let %e = exp(%x - %m);
    %e / sum(%e, dim=(1,), keepdim=True)
}"""
LAYER_NORM = """def @layer_norm[N: Dim](%x: Tensor[(N, 48), float32], %w: Tensor[(48,), float32],
    %b: Tensor[(48,), float32]) {
    let %mean = mean(%x, dim=(1,), keepdim=True);
    let %centred = %x - %mean;
    let %variance = mean(%centred * %centred, dim=(1,), keepdim=True);
    let %scale = rsqrt(%variance + 0.00001f32);
    (%centred * %scale * %w + %b, reshape(%scale, shape=(N,)))
}"""
BATCH_NORM = """def @batch_norm[N: Dim](%x: Tensor[(N, 3, 4, 5), float32]) {
    let %mean = mean(%x, dim=(0, 2, 3), keepdim=True);
    let %centred = %x - %mean;
    let %variance = mean(%centred * %centred, dim=(0, 2, 3), keepdim=True);
    %centred * rsqrt(%variance + 0.00001f32)
}"""
CROSS_ENTROPY = """def @cross_entropy[N: Dim, K: Dim](
    %x: Tensor[(N, K), float32], %y: Tensor[(N,), int64]) {
    let %m = amax(%x, dim=(1,), keepdim=True);
    let %total = sum(exp(%x - %m), dim=(1,), keepdim=True);
    let %log = reshape(log(%total) + %m, shape=(N,));
    let %chosen = reshape(gather(%x, reshape(%y, shape=(N, 1)), dim=1), shape=(N,));
    (%log - %chosen, exp(%x - reshape(%log, shape=(N, 1))))
}"""
COLUMNS = """def @columns[N: Dim, M: Dim](%x: Tensor[(N, M), float32]) {
    (sum(%x, dim=(0,)), amax(%x, dim=(0,)), mean(%x * %x, dim=(0,)))
}"""

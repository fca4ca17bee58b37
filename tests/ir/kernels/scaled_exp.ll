; t0: f32, t1: f32 -> t2: f32
; %0 = load t0 : f32
; %1 = load t1 : f32
; %2 = add %0, %1 : f32
; %3 = call exp %2 : f32
; %4 = constant 0x1p-1 : f64
; %5 = convert %4 : f32
; %6 = mul %3, %5 : f32
; store t2, %6
declare <16 x float> @llvm.copysign.v16f32(<16 x float>, <16 x float>)
declare <16 x float> @llvm.fabs.v16f32(<16 x float>)
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr, i32, <16 x i1>)
define internal <16 x float> @vector.exp(<16 x float> %x) alwaysinline {
  %v0 = fcmp ogt <16 x float> %x, splat (float 0x4056400000000000)
  %v1 = select <16 x i1> %v0, <16 x float> splat (float 0x4056400000000000), <16 x float> %x
  %v2 = fcmp olt <16 x float> %v1, splat (float 0xC05A400000000000)
  %v3 = select <16 x i1> %v2, <16 x float> splat (float 0xC05A400000000000), <16 x float> %v1
  %v4 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v3, <16 x float> splat (float 0x3FF7154760000000), <16 x float> splat (float 0x4168000000000000))
  %v5 = fsub <16 x float> %v4, splat (float 0x4168000000000000)
  %v6 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v5, <16 x float> splat (float 0xBFE62E4000000000), <16 x float> %v3)
  %v7 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v5, <16 x float> splat (float 0xBEB7F7D1C0000000), <16 x float> %v6)
  %v8 = fmul <16 x float> %v7, %v7
  %v9 = call <16 x float> @llvm.fma.v16f32(<16 x float> splat (float 0x3F56DB64C0000000), <16 x float> %v7, <16 x float> splat (float 0x3F8123CE00000000))
  %v10 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v9, <16 x float> %v7, <16 x float> splat (float 0x3FA55545C0000000))
  %v11 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v10, <16 x float> %v7, <16 x float> splat (float 0x3FC55548C0000000))
  %v12 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v11, <16 x float> %v7, <16 x float> splat (float 0x3FE0000000000000))
  %v13 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v8, <16 x float> %v12, <16 x float> %v7)
  %v14 = fadd <16 x float> %v13, splat (float 0x3FF0000000000000)
  %v15 = bitcast <16 x float> %v4 to <16 x i32>
  %v16 = sub <16 x i32> %v15, splat (i32 1262485504)
  %v17 = ashr <16 x i32> %v16, splat (i32 1)
  %v18 = sub <16 x i32> %v16, %v17
  %v19 = add <16 x i32> %v17, splat (i32 127)
  %v20 = shl <16 x i32> %v19, splat (i32 23)
  %v21 = bitcast <16 x i32> %v20 to <16 x float>
  %v22 = fmul <16 x float> %v14, %v21
  %v23 = add <16 x i32> %v18, splat (i32 127)
  %v24 = shl <16 x i32> %v23, splat (i32 23)
  %v25 = bitcast <16 x i32> %v24 to <16 x float>
  %v26 = fmul <16 x float> %v22, %v25
  ret <16 x float> %v26
}
define void @kernel(ptr %tensors, ptr %inner_strides, ptr %outer_strides, i64 %inner, i64 %outer, ptr %numbers) {
entry:
  %t0.slot = getelementptr ptr, ptr %tensors, i64 0
  %t0.base = load ptr, ptr %t0.slot
  %t0.outer.slot = getelementptr i64, ptr %outer_strides, i64 0
  %t0.outer = load i64, ptr %t0.outer.slot
  %t1.slot = getelementptr ptr, ptr %tensors, i64 1
  %t1.base = load ptr, ptr %t1.slot
  %t1.outer.slot = getelementptr i64, ptr %outer_strides, i64 1
  %t1.outer = load i64, ptr %t1.outer.slot
  %t2.slot = getelementptr ptr, ptr %tensors, i64 2
  %t2.base = load ptr, ptr %t2.slot
  %t2.outer.slot = getelementptr i64, ptr %outer_strides, i64 2
  %t2.outer = load i64, ptr %t2.outer.slot
  %v5 = fptrunc <16 x double> splat (double 0x3FE0000000000000) to <16 x float>
  %rest = urem i64 %inner, 16
  %whole = sub i64 %inner, %rest
  %has_whole = icmp ne i64 %whole, 0
  %has_rest = icmp ne i64 %rest, 0
  %rest32 = trunc i64 %rest to i32
  %x0 = insertelement <16 x i32> poison, i32 %rest32, i64 0
  %x1 = shufflevector <16 x i32> %x0, <16 x i32> poison, <16 x i32> zeroinitializer
  %mask = icmp ult <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %x1
  br label %row
row:
  %r = phi i64 [ 0, %entry ], [ %r.next, %row.end ]
  %t0.offset = mul i64 %r, %t0.outer
  %t0 = getelementptr float, ptr %t0.base, i64 %t0.offset
  %t1.offset = mul i64 %r, %t1.outer
  %t1 = getelementptr float, ptr %t1.base, i64 %t1.offset
  %t2.offset = mul i64 %r, %t2.outer
  %t2 = getelementptr float, ptr %t2.base, i64 %t2.offset
  br i1 %has_whole, label %vectors, label %tail
vectors:
  %i = phi i64 [ 0, %row ], [ %i.next, %vectors ]
  %x2 = getelementptr float, ptr %t0, i64 %i
  %v0 = load <16 x float>, ptr %x2, align 4
  %x3 = getelementptr float, ptr %t1, i64 %i
  %v1 = load <16 x float>, ptr %x3, align 4
  %v2 = fadd <16 x float> %v0, %v1
  %v3 = call <16 x float> @vector.exp(<16 x float> %v2)
  %v6 = fmul <16 x float> %v3, %v5
  %x4 = getelementptr float, ptr %t2, i64 %i
  store <16 x float> %v6, ptr %x4, align 4
  %i.next = add nuw i64 %i, 16
  %i.more = icmp ult i64 %i.next, %whole
  br i1 %i.more, label %vectors, label %tail
tail:
  br i1 %has_rest, label %masked, label %row.end
masked:
  %x5 = getelementptr float, ptr %t0, i64 %whole
  %m0 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %x5, i32 4, <16 x i1> %mask, <16 x float> zeroinitializer)
  %x6 = getelementptr float, ptr %t1, i64 %whole
  %m1 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %x6, i32 4, <16 x i1> %mask, <16 x float> zeroinitializer)
  %m2 = fadd <16 x float> %m0, %m1
  %m3 = call <16 x float> @vector.exp(<16 x float> %m2)
  %m6 = fmul <16 x float> %m3, %v5
  %x7 = getelementptr float, ptr %t2, i64 %whole
  call void @llvm.masked.store.v16f32.p0(<16 x float> %m6, ptr %x7, i32 4, <16 x i1> %mask)
  br label %row.end
row.end:
  %r.next = add nuw i64 %r, 1
  %more = icmp ult i64 %r.next, %outer
  br i1 %more, label %row, label %exit
exit:
  ret void
}

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
declare <16 x float> @llvm.x86.avx512.mask.scalef.ps.512(<16 x float>, <16 x float>, <16 x float>, i16, i32)
declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr, i32, <16 x i1>)
define internal <16 x float> @vector.exp(<16 x float> %x) alwaysinline {
  %v0 = fcmp ogt <16 x float> %x, splat (float 0x4056400000000000)
  %v1 = select <16 x i1> %v0, <16 x float> splat (float 0x4056400000000000), <16 x float> %x
  %v2 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v1, <16 x float> splat (float 0x3FF7154760000000), <16 x float> splat (float 0x4168000000000000))
  %v3 = fsub <16 x float> %v2, splat (float 0x4168000000000000)
  %v4 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v3, <16 x float> splat (float 0xBFE62E4000000000), <16 x float> %v1)
  %v5 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v3, <16 x float> splat (float 0xBEB7F7D1C0000000), <16 x float> %v4)
  %v6 = fmul <16 x float> %v5, %v5
  %v7 = call <16 x float> @llvm.fma.v16f32(<16 x float> splat (float 0x3F56DB64C0000000), <16 x float> %v5, <16 x float> splat (float 0x3F8123CE00000000))
  %v8 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v7, <16 x float> %v5, <16 x float> splat (float 0x3FA55545C0000000))
  %v9 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v8, <16 x float> %v5, <16 x float> splat (float 0x3FC55548C0000000))
  %v10 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v9, <16 x float> %v5, <16 x float> splat (float 0x3FE0000000000000))
  %v11 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v6, <16 x float> %v10, <16 x float> %v5)
  %v12 = fadd <16 x float> %v11, splat (float 0x3FF0000000000000)
  %v13 = fcmp uge <16 x float> %x, splat (float 0xC05A000000000000)
  %v14 = bitcast <16 x i1> %v13 to i16
  %v15 = call <16 x float> @llvm.x86.avx512.mask.scalef.ps.512(<16 x float> %v12, <16 x float> %v3, <16 x float> zeroinitializer, i16 %v14, i32 4)
  ret <16 x float> %v15
}
define void @kernel(ptr %tensors, ptr %strides, ptr %sizes, ptr %numbers, ptr %extents) {
entry:
  %inner.slot = getelementptr i64, ptr %sizes, i64 0
  %inner = load i64, ptr %inner.slot
  %outer.slot = getelementptr i64, ptr %sizes, i64 1
  %outer = load i64, ptr %outer.slot
  %t0.slot = getelementptr ptr, ptr %tensors, i64 0
  %t0.base = load ptr, ptr %t0.slot
  %t0.outer.slot = getelementptr i64, ptr %strides, i64 32
  %t0.outer = load i64, ptr %t0.outer.slot
  %t1.slot = getelementptr ptr, ptr %tensors, i64 1
  %t1.base = load ptr, ptr %t1.slot
  %t1.outer.slot = getelementptr i64, ptr %strides, i64 33
  %t1.outer = load i64, ptr %t1.outer.slot
  %t2.slot = getelementptr ptr, ptr %tensors, i64 2
  %t2.base = load ptr, ptr %t2.slot
  %t2.outer.slot = getelementptr i64, ptr %strides, i64 34
  %t2.outer = load i64, ptr %t2.outer.slot
  %v5 = fptrunc <16 x double> splat (double 0x3FE0000000000000) to <16 x float>
  %rest = urem i64 %inner, 16
  %whole = sub i64 %inner, %rest
  %has_rest = icmp ne i64 %rest, 0
  %rest32 = trunc i64 %rest to i32
  %x0 = insertelement <16 x i32> poison, i32 %rest32, i64 0
  %x1 = shufflevector <16 x i32> %x0, <16 x i32> poison, <16 x i32> zeroinitializer
  %mask = icmp ult <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %x1
  %l0.any = icmp ne i64 %outer, 0
  br i1 %l0.any, label %l0, label %l0.end
l0:
  %l0.i = phi i64 [ 0, %entry ], [ %l0.i.next, %l0.next ]
  %x2 = mul i64 %l0.i, %t0.outer
  %x3 = getelementptr float, ptr %t0.base, i64 %x2
  %x4 = mul i64 %l0.i, %t1.outer
  %x5 = getelementptr float, ptr %t1.base, i64 %x4
  %x6 = mul i64 %l0.i, %t2.outer
  %x7 = getelementptr float, ptr %t2.base, i64 %x6
  %l1.any = icmp ne i64 %whole, 0
  br i1 %l1.any, label %l1, label %l1.end
l1:
  %l1.i = phi i64 [ 0, %l0 ], [ %l1.i.next, %l1.next ]
  %x8 = getelementptr float, ptr %x3, i64 %l1.i
  %v0 = load <16 x float>, ptr %x8, align 4
  %x9 = getelementptr float, ptr %x5, i64 %l1.i
  %v1 = load <16 x float>, ptr %x9, align 4
  %v2 = fadd <16 x float> %v0, %v1
  %v3 = call <16 x float> @vector.exp(<16 x float> %v2)
  %v6 = fmul <16 x float> %v3, %v5
  %x10 = getelementptr float, ptr %x7, i64 %l1.i
  store <16 x float> %v6, ptr %x10, align 4
  br label %l1.next
l1.next:
  %l1.i.next = add nuw i64 %l1.i, 16
  %l1.more = icmp ult i64 %l1.i.next, %whole
  br i1 %l1.more, label %l1, label %l1.end
l1.end:
  br i1 %has_rest, label %l2, label %l2.end
l2:
  %x11 = getelementptr float, ptr %x3, i64 %whole
  %v0.1 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %x11, i32 4, <16 x i1> %mask, <16 x float> zeroinitializer)
  %x12 = getelementptr float, ptr %x5, i64 %whole
  %v1.1 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %x12, i32 4, <16 x i1> %mask, <16 x float> zeroinitializer)
  %v2.1 = fadd <16 x float> %v0.1, %v1.1
  %v3.1 = call <16 x float> @vector.exp(<16 x float> %v2.1)
  %v6.1 = fmul <16 x float> %v3.1, %v5
  %x13 = getelementptr float, ptr %x7, i64 %whole
  call void @llvm.masked.store.v16f32.p0(<16 x float> %v6.1, ptr %x13, i32 4, <16 x i1> %mask)
  br label %l2.end
l2.end:
  br label %l0.next
l0.next:
  %l0.i.next = add nuw i64 %l0.i, 1
  %l0.more = icmp ult i64 %l0.i.next, %outer
  br i1 %l0.more, label %l0, label %l0.end
l0.end:
  ret void
}

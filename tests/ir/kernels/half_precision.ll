; t0: bf16, t1: f16 -> t2: bf16
; %0 = load t0 : bf16
; %1 = load t1 : f16
; %2 = convert %1 : f32
; %3 = convert %2 : bf16
; %4 = convert %0 : f32
; %5 = convert %3 : f32
; %6 = add %4, %5 : f32
; %7 = convert %6 : bf16
; store t2, %7
declare <16 x half> @llvm.masked.load.v16f16.p0(ptr, i32, <16 x i1>, <16 x half>)
declare <16 x i16> @llvm.masked.load.v16i16.p0(ptr, i32, <16 x i1>, <16 x i16>)
declare void @llvm.masked.store.v16i16.p0(<16 x i16>, ptr, i32, <16 x i1>)
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
  %x3 = getelementptr i16, ptr %t0.base, i64 %x2
  %x4 = mul i64 %l0.i, %t1.outer
  %x5 = getelementptr half, ptr %t1.base, i64 %x4
  %x6 = mul i64 %l0.i, %t2.outer
  %x7 = getelementptr i16, ptr %t2.base, i64 %x6
  %l1.any = icmp ne i64 %whole, 0
  br i1 %l1.any, label %l1, label %l1.end
l1:
  %l1.i = phi i64 [ 0, %l0 ], [ %l1.i.next, %l1.next ]
  %x8 = getelementptr i16, ptr %x3, i64 %l1.i
  %v0 = load <16 x i16>, ptr %x8, align 2
  %x9 = getelementptr half, ptr %x5, i64 %l1.i
  %v1 = load <16 x half>, ptr %x9, align 2
  %v2 = fpext <16 x half> %v1 to <16 x float>
  %x10 = bitcast <16 x float> %v2 to <16 x i32>
  %x11 = lshr <16 x i32> %x10, splat (i32 16)
  %x12 = and <16 x i32> %x11, splat (i32 1)
  %x13 = add <16 x i32> %x12, splat (i32 32767)
  %x14 = add <16 x i32> %x10, %x13
  %x15 = lshr <16 x i32> %x14, splat (i32 16)
  %x16 = trunc <16 x i32> %x15 to <16 x i16>
  %x17 = fcmp uno <16 x float> %v2, zeroinitializer
  %v3 = select <16 x i1> %x17, <16 x i16> splat (i16 32704), <16 x i16> %x16
  %x18 = zext <16 x i16> %v0 to <16 x i32>
  %x19 = shl <16 x i32> %x18, splat (i32 16)
  %v4 = bitcast <16 x i32> %x19 to <16 x float>
  %x20 = zext <16 x i16> %v3 to <16 x i32>
  %x21 = shl <16 x i32> %x20, splat (i32 16)
  %v5 = bitcast <16 x i32> %x21 to <16 x float>
  %v6 = fadd <16 x float> %v4, %v5
  %x22 = bitcast <16 x float> %v6 to <16 x i32>
  %x23 = lshr <16 x i32> %x22, splat (i32 16)
  %x24 = and <16 x i32> %x23, splat (i32 1)
  %x25 = add <16 x i32> %x24, splat (i32 32767)
  %x26 = add <16 x i32> %x22, %x25
  %x27 = lshr <16 x i32> %x26, splat (i32 16)
  %x28 = trunc <16 x i32> %x27 to <16 x i16>
  %x29 = fcmp uno <16 x float> %v6, zeroinitializer
  %v7 = select <16 x i1> %x29, <16 x i16> splat (i16 32704), <16 x i16> %x28
  %x30 = getelementptr i16, ptr %x7, i64 %l1.i
  store <16 x i16> %v7, ptr %x30, align 2
  br label %l1.next
l1.next:
  %l1.i.next = add nuw i64 %l1.i, 16
  %l1.more = icmp ult i64 %l1.i.next, %whole
  br i1 %l1.more, label %l1, label %l1.end
l1.end:
  br i1 %has_rest, label %l2, label %l2.end
l2:
  %x31 = getelementptr i16, ptr %x3, i64 %whole
  %v0.1 = call <16 x i16> @llvm.masked.load.v16i16.p0(ptr %x31, i32 2, <16 x i1> %mask, <16 x i16> zeroinitializer)
  %x32 = getelementptr half, ptr %x5, i64 %whole
  %v1.1 = call <16 x half> @llvm.masked.load.v16f16.p0(ptr %x32, i32 2, <16 x i1> %mask, <16 x half> zeroinitializer)
  %v2.1 = fpext <16 x half> %v1.1 to <16 x float>
  %x33 = bitcast <16 x float> %v2.1 to <16 x i32>
  %x34 = lshr <16 x i32> %x33, splat (i32 16)
  %x35 = and <16 x i32> %x34, splat (i32 1)
  %x36 = add <16 x i32> %x35, splat (i32 32767)
  %x37 = add <16 x i32> %x33, %x36
  %x38 = lshr <16 x i32> %x37, splat (i32 16)
  %x39 = trunc <16 x i32> %x38 to <16 x i16>
  %x40 = fcmp uno <16 x float> %v2.1, zeroinitializer
  %v3.1 = select <16 x i1> %x40, <16 x i16> splat (i16 32704), <16 x i16> %x39
  %x41 = zext <16 x i16> %v0.1 to <16 x i32>
  %x42 = shl <16 x i32> %x41, splat (i32 16)
  %v4.1 = bitcast <16 x i32> %x42 to <16 x float>
  %x43 = zext <16 x i16> %v3.1 to <16 x i32>
  %x44 = shl <16 x i32> %x43, splat (i32 16)
  %v5.1 = bitcast <16 x i32> %x44 to <16 x float>
  %v6.1 = fadd <16 x float> %v4.1, %v5.1
  %x45 = bitcast <16 x float> %v6.1 to <16 x i32>
  %x46 = lshr <16 x i32> %x45, splat (i32 16)
  %x47 = and <16 x i32> %x46, splat (i32 1)
  %x48 = add <16 x i32> %x47, splat (i32 32767)
  %x49 = add <16 x i32> %x45, %x48
  %x50 = lshr <16 x i32> %x49, splat (i32 16)
  %x51 = trunc <16 x i32> %x50 to <16 x i16>
  %x52 = fcmp uno <16 x float> %v6.1, zeroinitializer
  %v7.1 = select <16 x i1> %x52, <16 x i16> splat (i16 32704), <16 x i16> %x51
  %x53 = getelementptr i16, ptr %x7, i64 %whole
  call void @llvm.masked.store.v16i16.p0(<16 x i16> %v7.1, ptr %x53, i32 2, <16 x i1> %mask)
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

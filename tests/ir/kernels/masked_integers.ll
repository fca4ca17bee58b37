; t0: i64, t1: b1, n0: i64 -> t2: i64, t3: b1
; %0 = load t0 : i64
; %1 = load t1 : b1
; %2 = number n0 : i64
; %3 = compare lt %0, %2 : b1
; %4 = bit_and %3, %1 : b1
; %5 = select %4, %0, %2 : i64
; store t2, %5
; store t3, %4
declare <8 x i64> @llvm.masked.gather.v8i64.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x i64>)
declare void @llvm.masked.scatter.v8i8.v8p0(<8 x i8>, <8 x ptr>, i32, <8 x i1>)
declare void @llvm.masked.store.v8i64.p0(<8 x i64>, ptr, i32, <8 x i1>)
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
  %t0.inner.slot = getelementptr i64, ptr %strides, i64 0
  %t0.inner = load i64, ptr %t0.inner.slot
  %x0 = insertelement <8 x i64> poison, i64 %t0.inner, i64 0
  %x1 = shufflevector <8 x i64> %x0, <8 x i64> poison, <8 x i32> zeroinitializer
  %t0.lanes = mul <8 x i64> %x1, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
  %t1.slot = getelementptr ptr, ptr %tensors, i64 1
  %t1.base = load ptr, ptr %t1.slot
  %t1.outer.slot = getelementptr i64, ptr %strides, i64 33
  %t1.outer = load i64, ptr %t1.outer.slot
  %t2.slot = getelementptr ptr, ptr %tensors, i64 2
  %t2.base = load ptr, ptr %t2.slot
  %t2.outer.slot = getelementptr i64, ptr %strides, i64 34
  %t2.outer = load i64, ptr %t2.outer.slot
  %t3.slot = getelementptr ptr, ptr %tensors, i64 3
  %t3.base = load ptr, ptr %t3.slot
  %t3.outer.slot = getelementptr i64, ptr %strides, i64 35
  %t3.outer = load i64, ptr %t3.outer.slot
  %t3.inner.slot = getelementptr i64, ptr %strides, i64 3
  %t3.inner = load i64, ptr %t3.inner.slot
  %x2 = insertelement <8 x i64> poison, i64 %t3.inner, i64 0
  %x3 = shufflevector <8 x i64> %x2, <8 x i64> poison, <8 x i32> zeroinitializer
  %t3.lanes = mul <8 x i64> %x3, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
  %x4 = getelementptr i64, ptr %numbers, i64 0
  %x5 = load i64, ptr %x4
  %x6 = insertelement <8 x i64> poison, i64 %x5, i64 0
  %v2 = shufflevector <8 x i64> %x6, <8 x i64> poison, <8 x i32> zeroinitializer
  %rest = urem i64 %inner, 8
  %whole = sub i64 %inner, %rest
  %has_rest = icmp ne i64 %rest, 0
  %rest32 = trunc i64 %rest to i32
  %x7 = insertelement <8 x i32> poison, i32 %rest32, i64 0
  %x8 = shufflevector <8 x i32> %x7, <8 x i32> poison, <8 x i32> zeroinitializer
  %mask = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %x8
  %l0.any = icmp ne i64 %outer, 0
  br i1 %l0.any, label %l0, label %l0.end
l0:
  %l0.i = phi i64 [ 0, %entry ], [ %l0.i.next, %l0.next ]
  %x9 = mul i64 %l0.i, %t0.outer
  %x10 = getelementptr i64, ptr %t0.base, i64 %x9
  %x11 = mul i64 %l0.i, %t1.outer
  %x12 = getelementptr i8, ptr %t1.base, i64 %x11
  %x13 = mul i64 %l0.i, %t2.outer
  %x14 = getelementptr i64, ptr %t2.base, i64 %x13
  %x15 = mul i64 %l0.i, %t3.outer
  %x16 = getelementptr i8, ptr %t3.base, i64 %x15
  %x17 = load i8, ptr %x12, align 1
  %x18 = insertelement <8 x i8> poison, i8 %x17, i64 0
  %x19 = shufflevector <8 x i8> %x18, <8 x i8> poison, <8 x i32> zeroinitializer
  %v1 = icmp ne <8 x i8> %x19, zeroinitializer
  %l1.any = icmp ne i64 %whole, 0
  br i1 %l1.any, label %l1, label %l1.end
l1:
  %l1.i = phi i64 [ 0, %l0 ], [ %l1.i.next, %l1.next ]
  %x20 = mul i64 %l1.i, %t0.inner
  %x21 = getelementptr i64, ptr %x10, i64 %x20
  %x22 = getelementptr i64, ptr %x21, <8 x i64> %t0.lanes
  %v0 = call <8 x i64> @llvm.masked.gather.v8i64.v8p0(<8 x ptr> %x22, i32 8, <8 x i1> splat (i1 true), <8 x i64> zeroinitializer)
  %v3 = icmp slt <8 x i64> %v0, %v2
  %v4 = and <8 x i1> %v3, %v1
  %v5 = select <8 x i1> %v4, <8 x i64> %v0, <8 x i64> %v2
  %x23 = getelementptr i64, ptr %x14, i64 %l1.i
  store <8 x i64> %v5, ptr %x23, align 8
  %x24 = zext <8 x i1> %v4 to <8 x i8>
  %x25 = mul i64 %l1.i, %t3.inner
  %x26 = getelementptr i8, ptr %x16, i64 %x25
  %x27 = getelementptr i8, ptr %x26, <8 x i64> %t3.lanes
  call void @llvm.masked.scatter.v8i8.v8p0(<8 x i8> %x24, <8 x ptr> %x27, i32 1, <8 x i1> splat (i1 true))
  br label %l1.next
l1.next:
  %l1.i.next = add nuw i64 %l1.i, 8
  %l1.more = icmp ult i64 %l1.i.next, %whole
  br i1 %l1.more, label %l1, label %l1.end
l1.end:
  br i1 %has_rest, label %l2, label %l2.end
l2:
  %x28 = mul i64 %whole, %t0.inner
  %x29 = getelementptr i64, ptr %x10, i64 %x28
  %x30 = getelementptr i64, ptr %x29, <8 x i64> %t0.lanes
  %v0.1 = call <8 x i64> @llvm.masked.gather.v8i64.v8p0(<8 x ptr> %x30, i32 8, <8 x i1> %mask, <8 x i64> zeroinitializer)
  %v3.1 = icmp slt <8 x i64> %v0.1, %v2
  %v4.1 = and <8 x i1> %v3.1, %v1
  %v5.1 = select <8 x i1> %v4.1, <8 x i64> %v0.1, <8 x i64> %v2
  %x31 = getelementptr i64, ptr %x14, i64 %whole
  call void @llvm.masked.store.v8i64.p0(<8 x i64> %v5.1, ptr %x31, i32 8, <8 x i1> %mask)
  %x32 = zext <8 x i1> %v4.1 to <8 x i8>
  %x33 = mul i64 %whole, %t3.inner
  %x34 = getelementptr i8, ptr %x16, i64 %x33
  %x35 = getelementptr i8, ptr %x34, <8 x i64> %t3.lanes
  call void @llvm.masked.scatter.v8i8.v8p0(<8 x i8> %x32, <8 x ptr> %x35, i32 1, <8 x i1> %mask)
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

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
define void @kernel(ptr %tensors, ptr %inner_strides, ptr %outer_strides, i64 %inner, i64 %outer, ptr %numbers) {
entry:
  %t0.slot = getelementptr ptr, ptr %tensors, i64 0
  %t0.base = load ptr, ptr %t0.slot
  %t0.outer.slot = getelementptr i64, ptr %outer_strides, i64 0
  %t0.outer = load i64, ptr %t0.outer.slot
  %t0.inner.slot = getelementptr i64, ptr %inner_strides, i64 0
  %t0.inner = load i64, ptr %t0.inner.slot
  %x0 = insertelement <8 x i64> poison, i64 %t0.inner, i64 0
  %x1 = shufflevector <8 x i64> %x0, <8 x i64> poison, <8 x i32> zeroinitializer
  %t0.lanes = mul <8 x i64> %x1, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
  %t1.slot = getelementptr ptr, ptr %tensors, i64 1
  %t1.base = load ptr, ptr %t1.slot
  %t1.outer.slot = getelementptr i64, ptr %outer_strides, i64 1
  %t1.outer = load i64, ptr %t1.outer.slot
  %t2.slot = getelementptr ptr, ptr %tensors, i64 2
  %t2.base = load ptr, ptr %t2.slot
  %t2.outer.slot = getelementptr i64, ptr %outer_strides, i64 2
  %t2.outer = load i64, ptr %t2.outer.slot
  %t3.slot = getelementptr ptr, ptr %tensors, i64 3
  %t3.base = load ptr, ptr %t3.slot
  %t3.outer.slot = getelementptr i64, ptr %outer_strides, i64 3
  %t3.outer = load i64, ptr %t3.outer.slot
  %t3.inner.slot = getelementptr i64, ptr %inner_strides, i64 3
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
  %has_whole = icmp ne i64 %whole, 0
  %has_rest = icmp ne i64 %rest, 0
  %rest32 = trunc i64 %rest to i32
  %x7 = insertelement <8 x i32> poison, i32 %rest32, i64 0
  %x8 = shufflevector <8 x i32> %x7, <8 x i32> poison, <8 x i32> zeroinitializer
  %mask = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %x8
  br label %row
row:
  %r = phi i64 [ 0, %entry ], [ %r.next, %row.end ]
  %t0.offset = mul i64 %r, %t0.outer
  %t0 = getelementptr i64, ptr %t0.base, i64 %t0.offset
  %t1.offset = mul i64 %r, %t1.outer
  %t1 = getelementptr i8, ptr %t1.base, i64 %t1.offset
  %t2.offset = mul i64 %r, %t2.outer
  %t2 = getelementptr i64, ptr %t2.base, i64 %t2.offset
  %t3.offset = mul i64 %r, %t3.outer
  %t3 = getelementptr i8, ptr %t3.base, i64 %t3.offset
  %x9 = load i8, ptr %t1, align 1
  %x10 = insertelement <8 x i8> poison, i8 %x9, i64 0
  %x11 = shufflevector <8 x i8> %x10, <8 x i8> poison, <8 x i32> zeroinitializer
  %v1 = icmp ne <8 x i8> %x11, zeroinitializer
  br i1 %has_whole, label %vectors, label %tail
vectors:
  %i = phi i64 [ 0, %row ], [ %i.next, %vectors ]
  %x12 = mul i64 %i, %t0.inner
  %x13 = getelementptr i64, ptr %t0, i64 %x12
  %x14 = getelementptr i64, ptr %x13, <8 x i64> %t0.lanes
  %v0 = call <8 x i64> @llvm.masked.gather.v8i64.v8p0(<8 x ptr> %x14, i32 8, <8 x i1> splat (i1 true), <8 x i64> zeroinitializer)
  %v3 = icmp slt <8 x i64> %v0, %v2
  %v4 = and <8 x i1> %v3, %v1
  %v5 = select <8 x i1> %v4, <8 x i64> %v0, <8 x i64> %v2
  %x15 = getelementptr i64, ptr %t2, i64 %i
  store <8 x i64> %v5, ptr %x15, align 8
  %x16 = zext <8 x i1> %v4 to <8 x i8>
  %x17 = mul i64 %i, %t3.inner
  %x18 = getelementptr i8, ptr %t3, i64 %x17
  %x19 = getelementptr i8, ptr %x18, <8 x i64> %t3.lanes
  call void @llvm.masked.scatter.v8i8.v8p0(<8 x i8> %x16, <8 x ptr> %x19, i32 1, <8 x i1> splat (i1 true))
  %i.next = add nuw i64 %i, 8
  %i.more = icmp ult i64 %i.next, %whole
  br i1 %i.more, label %vectors, label %tail
tail:
  br i1 %has_rest, label %masked, label %row.end
masked:
  %x20 = mul i64 %whole, %t0.inner
  %x21 = getelementptr i64, ptr %t0, i64 %x20
  %x22 = getelementptr i64, ptr %x21, <8 x i64> %t0.lanes
  %m0 = call <8 x i64> @llvm.masked.gather.v8i64.v8p0(<8 x ptr> %x22, i32 8, <8 x i1> %mask, <8 x i64> zeroinitializer)
  %m3 = icmp slt <8 x i64> %m0, %v2
  %m4 = and <8 x i1> %m3, %v1
  %m5 = select <8 x i1> %m4, <8 x i64> %m0, <8 x i64> %v2
  %x23 = getelementptr i64, ptr %t2, i64 %whole
  call void @llvm.masked.store.v8i64.p0(<8 x i64> %m5, ptr %x23, i32 8, <8 x i1> %mask)
  %x24 = zext <8 x i1> %m4 to <8 x i8>
  %x25 = mul i64 %whole, %t3.inner
  %x26 = getelementptr i8, ptr %t3, i64 %x25
  %x27 = getelementptr i8, ptr %x26, <8 x i64> %t3.lanes
  call void @llvm.masked.scatter.v8i8.v8p0(<8 x i8> %x24, <8 x ptr> %x27, i32 1, <8 x i1> %mask)
  br label %row.end
row.end:
  %r.next = add nuw i64 %r, 1
  %more = icmp ult i64 %r.next, %outer
  br i1 %more, label %row, label %exit
exit:
  ret void
}

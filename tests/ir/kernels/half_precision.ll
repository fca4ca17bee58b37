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
  %t0 = getelementptr i16, ptr %t0.base, i64 %t0.offset
  %t1.offset = mul i64 %r, %t1.outer
  %t1 = getelementptr half, ptr %t1.base, i64 %t1.offset
  %t2.offset = mul i64 %r, %t2.outer
  %t2 = getelementptr i16, ptr %t2.base, i64 %t2.offset
  br i1 %has_whole, label %vectors, label %tail
vectors:
  %i = phi i64 [ 0, %row ], [ %i.next, %vectors ]
  %x2 = getelementptr i16, ptr %t0, i64 %i
  %v0 = load <16 x i16>, ptr %x2, align 2
  %x3 = getelementptr half, ptr %t1, i64 %i
  %v1 = load <16 x half>, ptr %x3, align 2
  %v2 = fpext <16 x half> %v1 to <16 x float>
  %x4 = bitcast <16 x float> %v2 to <16 x i32>
  %x5 = lshr <16 x i32> %x4, splat (i32 16)
  %x6 = and <16 x i32> %x5, splat (i32 1)
  %x7 = add <16 x i32> %x6, splat (i32 32767)
  %x8 = add <16 x i32> %x4, %x7
  %x9 = lshr <16 x i32> %x8, splat (i32 16)
  %x10 = trunc <16 x i32> %x9 to <16 x i16>
  %x11 = fcmp uno <16 x float> %v2, zeroinitializer
  %v3 = select <16 x i1> %x11, <16 x i16> splat (i16 32704), <16 x i16> %x10
  %x12 = zext <16 x i16> %v0 to <16 x i32>
  %x13 = shl <16 x i32> %x12, splat (i32 16)
  %v4 = bitcast <16 x i32> %x13 to <16 x float>
  %x14 = zext <16 x i16> %v3 to <16 x i32>
  %x15 = shl <16 x i32> %x14, splat (i32 16)
  %v5 = bitcast <16 x i32> %x15 to <16 x float>
  %v6 = fadd <16 x float> %v4, %v5
  %x16 = bitcast <16 x float> %v6 to <16 x i32>
  %x17 = lshr <16 x i32> %x16, splat (i32 16)
  %x18 = and <16 x i32> %x17, splat (i32 1)
  %x19 = add <16 x i32> %x18, splat (i32 32767)
  %x20 = add <16 x i32> %x16, %x19
  %x21 = lshr <16 x i32> %x20, splat (i32 16)
  %x22 = trunc <16 x i32> %x21 to <16 x i16>
  %x23 = fcmp uno <16 x float> %v6, zeroinitializer
  %v7 = select <16 x i1> %x23, <16 x i16> splat (i16 32704), <16 x i16> %x22
  %x24 = getelementptr i16, ptr %t2, i64 %i
  store <16 x i16> %v7, ptr %x24, align 2
  %i.next = add nuw i64 %i, 16
  %i.more = icmp ult i64 %i.next, %whole
  br i1 %i.more, label %vectors, label %tail
tail:
  br i1 %has_rest, label %masked, label %row.end
masked:
  %x25 = getelementptr i16, ptr %t0, i64 %whole
  %m0 = call <16 x i16> @llvm.masked.load.v16i16.p0(ptr %x25, i32 2, <16 x i1> %mask, <16 x i16> zeroinitializer)
  %x26 = getelementptr half, ptr %t1, i64 %whole
  %m1 = call <16 x half> @llvm.masked.load.v16f16.p0(ptr %x26, i32 2, <16 x i1> %mask, <16 x half> zeroinitializer)
  %m2 = fpext <16 x half> %m1 to <16 x float>
  %x27 = bitcast <16 x float> %m2 to <16 x i32>
  %x28 = lshr <16 x i32> %x27, splat (i32 16)
  %x29 = and <16 x i32> %x28, splat (i32 1)
  %x30 = add <16 x i32> %x29, splat (i32 32767)
  %x31 = add <16 x i32> %x27, %x30
  %x32 = lshr <16 x i32> %x31, splat (i32 16)
  %x33 = trunc <16 x i32> %x32 to <16 x i16>
  %x34 = fcmp uno <16 x float> %m2, zeroinitializer
  %m3 = select <16 x i1> %x34, <16 x i16> splat (i16 32704), <16 x i16> %x33
  %x35 = zext <16 x i16> %m0 to <16 x i32>
  %x36 = shl <16 x i32> %x35, splat (i32 16)
  %m4 = bitcast <16 x i32> %x36 to <16 x float>
  %x37 = zext <16 x i16> %m3 to <16 x i32>
  %x38 = shl <16 x i32> %x37, splat (i32 16)
  %m5 = bitcast <16 x i32> %x38 to <16 x float>
  %m6 = fadd <16 x float> %m4, %m5
  %x39 = bitcast <16 x float> %m6 to <16 x i32>
  %x40 = lshr <16 x i32> %x39, splat (i32 16)
  %x41 = and <16 x i32> %x40, splat (i32 1)
  %x42 = add <16 x i32> %x41, splat (i32 32767)
  %x43 = add <16 x i32> %x39, %x42
  %x44 = lshr <16 x i32> %x43, splat (i32 16)
  %x45 = trunc <16 x i32> %x44 to <16 x i16>
  %x46 = fcmp uno <16 x float> %m6, zeroinitializer
  %m7 = select <16 x i1> %x46, <16 x i16> splat (i16 32704), <16 x i16> %x45
  %x47 = getelementptr i16, ptr %t2, i64 %whole
  call void @llvm.masked.store.v16i16.p0(<16 x i16> %m7, ptr %x47, i32 2, <16 x i1> %mask)
  br label %row.end
row.end:
  %r.next = add nuw i64 %r, 1
  %more = icmp ult i64 %r.next, %outer
  br i1 %more, label %row, label %exit
exit:
  ret void
}

#include "textflag.h"

// func widen(dst []float32, src []byte)
//
// Interleaving zero words with the elements puts each into the upper half of a float32.
TEXT ·widen(SB), NOSPLIT, $0-48
	MOVQ dst_base+0(FP), DI
	MOVQ src_base+24(FP), SI
	MOVQ src_len+32(FP), CX
	SHRQ $4, CX
	JZ   done

eight:
	MOVOU     (SI), X2
	PXOR      X0, X0
	PXOR      X1, X1
	PUNPCKLWL X2, X0
	PUNPCKHWL X2, X1
	MOVOU     X0, (DI)
	MOVOU     X1, 16(DI)
	ADDQ      $16, SI
	ADDQ      $32, DI
	DECQ      CX
	JNZ       eight

done:
	RET

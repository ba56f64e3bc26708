package tensor

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"testing"
)

// Every row of the table says the same of a type in each of its columns.
func TestTypesAreOfOneMind(t *testing.T) {
	named := map[string]DType{}
	for d := DType(1); d.Valid(); d++ {
		elems, bytes := d.Block()
		if other, taken := named[d.String()]; taken || d.String() == "" {
			t.Errorf("types %d and %d are called %q", other, d, d)
		}
		named[d.String()] = d
		if d.Kind() == 0 || elems < 1 || bytes < 1 {
			t.Errorf("%v is of kind %d, %d elements in %d bytes", d, d.Kind(), elems, bytes)
		}
		if (d.Word() == 0) != (d.Kind() == Block) || d.Kind() != Block && dtypes[d].rowBytes != 0 {
			t.Errorf("%v of kind %d has words of %d bytes, and %d in front of a row", d, d.Kind(), d.Word(), dtypes[d].rowBytes)
		}
		if d.Packed() != (d.Descr() == "|u1" && d != U8) {
			t.Errorf("%v is shown to NumPy as %s", d, d.Descr())
		}
		if size, err := strconv.ParseInt(d.Descr()[2:], 10, 64); !d.Packed() && (err != nil || size != bytes || elems != 1) {
			t.Errorf("%v has %d bytes, NumPy's %s others", d, bytes, d.Descr())
		}
	}
	if d := DType(dtypeEnd); d.Valid() || d.Kind() != 0 || DType(0).Valid() {
		t.Error("a number beyond the table is a type")
	}
}

func TestSize(t *testing.T) {
	for _, test := range []struct {
		dtype   DType
		shape   []uint64
		roundUp bool
		want    int64
		reason  error
	}{
		{F32, nil, false, 4, nil},
		{F32, []uint64{2, 3}, false, 24, nil},
		{F32, []uint64{0, 1 << 63, 1}, false, 0, nil},
		{F32, []uint64{1 << 63, 2, 0}, false, 0, ErrTooLarge}, // as the safetensors reference multiplies
		{U8, []uint64{1 << 63}, false, 0, ErrTooLarge},
		{F64, []uint64{1 << 60}, false, 0, ErrTooLarge},
		{I4, []uint64{3}, true, 2, nil},
		{I4, []uint64{3}, false, 0, ErrMalformed},
		{F6_E2M3, []uint64{4}, false, 3, nil},
		{F6_E2M3, []uint64{2}, true, 2, nil},
		{Q4_0, []uint64{5, 64}, false, 5 * 2 * 18, nil},
		{Q4_0, []uint64{64, 5}, true, 0, ErrMalformed}, // a block never crosses a row
		{Q4_0, []uint64{0, 64}, false, 0, nil},
		{IQ4_KS, []uint64{3, 512}, false, 3 * (4 + 2*136), nil},
		{Q8_K, []uint64{1 << 55, 256}, false, 0, ErrTooLarge},
		{dtypeEnd, []uint64{1}, false, 0, ErrUnsupported},
	} {
		got, err := test.dtype.Size(test.shape, test.roundUp)
		if got != test.want || !errors.Is(err, test.reason) || test.reason == nil && err != nil {
			t.Errorf("%v of %v (%v): %d, %v, want %d, %v", test.shape, test.dtype, test.roundUp, got, err, test.want, test.reason)
		}
	}
}

func TestByteShape(t *testing.T) {
	for _, test := range []struct {
		dtype DType
		shape []uint64
		size  int64
		want  []uint64
	}{
		{F16, []uint64{3, 2}, 12, []uint64{3, 2}},
		{Q4_0, []uint64{3, 64}, 3 * 36, []uint64{3, 36}},
		{I4, []uint64{2, 4}, 4, []uint64{2, 2}},
		{I4, []uint64{2, 3}, 3, []uint64{3}}, // no row is whole bytes
		{I4, nil, 1, []uint64{1}},
		{Q4_0, []uint64{math.MaxUint64, 64}, 0, []uint64{0}},
	} {
		if got := test.dtype.ByteShape(test.shape, test.size); !slices.Equal(got, test.want) {
			t.Errorf("%v of %v in %d bytes is %v, want %v", test.shape, test.dtype, test.size, got, test.want)
		}
	}
}

package pickle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"

	"weightfs/format/tensor"
)

func load(b string) (*Pickle, error) {
	c := tensor.NewCursor(strings.NewReader(b), int64(len(b)), "test")
	return Load(c, func(g Global) string {
		if g.Module == "sealed" {
			return "a sealed value"
		}
		return ""
	})
}

// str is BINUNICODE.
func str(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

func TestValues(t *testing.T) {
	for _, test := range []struct{ name, pickle, want string }{
		{"none", "N.", "None"},
		{"bools", "\x88\x89\x86.", "(True, False)"},
		{"ints", "(K\xffM\xff\xffJ\xff\xff\xff\xfft.", "(255, 65535, -1)"},
		{"long of no bytes", "\x8a\x00.", "0"},
		{"longs", "(\x8a\x01\xff\x8a\x02\xff\x00\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00t.", "(-1, 255, 9223372036854775808)"},
		{"long of 64 bits", "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80.", "-9223372036854775808"},
		{"long4", "\x8b\x02\x00\x00\x00\x00\x80.", "-32768"},
		{"float", "G\x3f\xb9\x99\x99\x99\x99\x99\x9a.", "0.1"},
		{"strings", "(" + str("a") + "\x8c\x01b\x8d\x01\x00\x00\x00\x00\x00\x00\x00cU\x01dT\x01\x00\x00\x00et.", "('a', 'b', 'c', 'd', 'e')"},
		{"bytes", "(C\x01aB\x01\x00\x00\x00b\x8e\x01\x00\x00\x00\x00\x00\x00\x00c\x96\x01\x00\x00\x00\x00\x00\x00\x00\xfft.", `(b'a', b'b', b'c', b'\xff')`},
		{"python 2 str that is no text", "U\x01\xff.", `b'\xff'`},
		{"lone surrogate", str("\xed\xa0\x80") + "\x85.", "('\ufffd\ufffd\ufffd',)"},
		{"tuples", ")K\x01\x85K\x01K\x02\x86K\x01K\x02K\x03\x87\x87\x86.", "((), ((1,), (1, 2), (1, 2, 3)))"},
		{"list", "]K\x01a(K\x02K\x03e.", "[1, 2, 3]"},
		{"dict", "}K\x01Ns(" + str("a") + "K\x02u.", "{1: None, 'a': 2}"},
		{"a key that is set again keeps its place", "}(K\x01NK\x02N\x88" + str("x") + "u.", "{1: 'x', 2: None}"},
		{"tuples as keys are equal by value", "}(K\x01K\x02\x86K\x07K\x01K\x02\x86K\x08u.", "{(1, 2): 8}"},
		{"set", "\x8f(K\x01K\x02\x90.", "{1, 2}"},
		{"frozenset", "(K\x01\x91.", "{1}"},
		{"memo", "]q\x05h\x05a.", "[[[["},
		{"memoize", "\x8c\x01a\x94h\x00\x86.", "('a', 'a')"},
		{"sparse memo", "K\x01r\xff\xff\xff\x7f0j\xff\xff\xff\x7f.", "1"},
		{"pop and dup", "K\x01K\x0202\x86.", "(1, 1)"},
		{"pop of a mark", "K\x01(0.", "1"},
		{"pop mark", "K\x01(K\x02K\x031.", "1"},
		{"frame", "\x95\x02\x00\x00\x00\x00\x00\x00\x00K\x01.", "1"},
		{"global", "ccollections\nOrderedDict\n.", "collections.OrderedDict"},
		{"stack global", "\x8c\x01m\x8c\x01n\x93.", "m.n"},
		{"a call is not made", "cos\nsystem\n" + str("rm") + "\x85R.", "os.system('rm')"},
		{"ordered dict", "ccollections\nOrderedDict\n)R" + str("a") + "K\x01s}b.", "{'a': 1}"},
		{"ordered dict of python 2", "ccollections\nOrderedDict\n]]" + str("a") + "aK\x01aa\x85R.", "{'a': 1}"},
		{"counter", "ccollections\nCounter\n}" + str("a") + "K\x01s\x85R.", "{'a': 1}"},
		{"default dict", "ccollections\ndefaultdict\nc__builtin__\nlist\n\x85RK\x01]s.", "{1: []}"},
		{"a list made of a list is another", "]K\x01aq\x00c__builtin__\nlist\nh\x00\x85RK\x02ah\x00\x86.", "([1, 2], [1])"},
		{"a tuple made of a list", "c__builtin__\ntuple\n]K\x01a\x85R.", "(1,)"},
		{"a list made of nothing", "c__builtin__\nlist\n)R.", "[]"},
		{"new dict and list", "c__builtin__\ndict\n)\x81c__builtin__\nlist\nK\x01\x85\x81\x86.", "({}, [])"},
		{"True, 1 and 1.0 are one key", "}(\x88K\x01K\x01K\x02G\x3f\xf0\x00\x00\x00\x00\x00\x00K\x03\x89K\x04u.", "{True: 3, False: 4}"},
		{"ints of more than 64 bits as keys", "}(\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00K\x01\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00K\x02u.", "{9223372036854775808: 2}"},
		{"a frozenset as a key", "}((K\x01\x91K\x02u.", "{{1}: 2}"},
		{"a memo that is filled from behind", "K\x01q\x02K\x02q\x01K\x03q\x00h\x00h\x01h\x02\x87.", "(3, 2, 1)"},
		{"bytes of nothing and of bytes", "c__builtin__\nbytes\n)Rc__builtin__\nbytearray\nC\x01a\x85R\x86.", "(b'', b'a')"},
		{"set of python 2", "c__builtin__\nset\n]K\x01a\x85R.", "{1}"},
		{"bytes of protocol 2", "c_codecs\nencode\n" + str("\u00ff") + str("latin1") + "\x86R.", `b'\xff'`},
		{"new object", "cm\nC\nK\x01\x85\x81}b.", "m.C(1)"},
		{"new object with keywords", "cm\nC\n)}" + str("a") + "K\x01s\x92.", "m.C()"},
		{"reconstructed object", "ccopy_reg\n_reconstructor\ncm\nC\nc__builtin__\nobject\nN\x87R.", "m.C(builtins.object, None)"},
		{"items of a dict subclass", "cm\nC\n)\x81K\x01K\x02s.", "m.C()"},
		{"persistent id", "K\x01Q.", "<persistent>"},
		{"marks left at the end", "K\x01((K\x02.", "2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := load("\x80\x02" + test.pickle)
			if err != nil {
				t.Fatal(err)
			}
			w := writer{limit: 100}
			w.repr(p.Root)
			got := string(w.dst)
			if got != test.want && !strings.HasPrefix(got, "[[[[[[") {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	for _, test := range []struct {
		name, pickle string
		off          int64
		reason       error
		about        string
	}{
		{"empty", "", 0, tensor.ErrTruncated, "truncated"},
		{"no STOP", "N", 1, tensor.ErrTruncated, "truncated"},
		{"nothing to return", ".", 0, tensor.ErrMalformed, "STOP"},
		{"unknown opcode", "v.", 0, tensor.ErrMalformed, "opcode"},
		{"opcode of protocol 0", "I1\n.", 0, tensor.ErrUnsupported, "INT"},
		{"extension registry", "\x82\x01.", 0, tensor.ErrUnsupported, "EXT1"},
		{"protocol 6", "\x80\x06N.", 0, tensor.ErrUnsupported, "protocol 6"},
		{"frame beyond the end", "\x95\xff\xff\xff\xff\xff\xff\xff\xffN.", 0, tensor.ErrTruncated, "frame"},
		{"str beyond the end", "X\xff\xff\xff\xff.", 5, tensor.ErrTruncated, "4294967295"},
		{"bytes of 2^64-1", "\x8e\xff\xff\xff\xff\xff\xff\xff\xff.", 9, tensor.ErrTruncated, "truncated"},
		{"bytearray of 2^63", "\x96\x00\x00\x00\x00\x00\x00\x00\x80.", 9, tensor.ErrTruncated, "truncated"},
		{"long beyond the end", "\x8b\xff\xff\xff\x7f.", 5, tensor.ErrTruncated, "truncated"},
		{"long of 1025 bytes", "\x8b\x01\x04\x00\x00" + strings.Repeat("x", 1025) + ".", 5, tensor.ErrTooLarge, "1024"},
		{"str that is not UTF-8", str("\xff") + ".", 0, tensor.ErrMalformed, "UTF-8"},
		{"unknown memo entry", "h\x07.", 0, tensor.ErrMalformed, "memo"},
		{"memo of nothing", "q\x07.", 0, tensor.ErrMalformed, "BINPUT"},
		{"pop below a mark", "K\x01(Na.", 4, tensor.ErrMalformed, "APPEND"},
		{"tuple without a mark", "K\x01t.", 2, tensor.ErrMalformed, "mark"},
		{"tuple3 of two", "NN\x87.", 2, tensor.ErrMalformed, "needs 3"},
		{"SETITEM on a list", "]NNs.", 3, tensor.ErrMalformed, "SETITEM: a list"},
		{"SETITEM on an int", "K\x01NNs.", 4, tensor.ErrMalformed, "SETITEM"},
		{"SETITEMS of an odd number", "}(Nu.", 3, tensor.ErrMalformed, "SETITEMS"},
		{"SETITEM on a sealed value", "csealed\nf\n)RNNs.", 14, tensor.ErrMalformed, "SETITEM on a sealed value"},
		{"APPEND on a dict", "}Na.", 2, tensor.ErrMalformed, "APPEND: a dict"},
		{"APPENDS on a tuple", ")(Ne.", 3, tensor.ErrMalformed, "APPENDS"},
		{"ADDITEMS on a frozenset", "(\x91(N\x90.", 4, tensor.ErrMalformed, "frozenset"},
		{"BUILD on a plain dict", "}}b.", 2, tensor.ErrMalformed, "BUILD"},
		{"BUILD on a str", str("a") + "}b.", 7, tensor.ErrMalformed, "BUILD: a str"},
		{"BUILD on a sealed value", "csealed\nf\n)R}b.", 13, tensor.ErrMalformed, "BUILD on a sealed value"},
		{"BUILD on a persistent object", "NQ}b.", 3, tensor.ErrMalformed, "BUILD"},
		{"REDUCE of an int", "K\x01)R.", 3, tensor.ErrMalformed, "an int cannot be called"},
		{"REDUCE without a tuple", "cm\nn\n]R.", 6, tensor.ErrMalformed, "tuple"},
		{"NEWOBJ of a str", str("a") + ")\x81.", 7, tensor.ErrMalformed, "a str cannot be called"},
		{"list as a key", "}]Ns.", 3, tensor.ErrMalformed, "a list is no key"},
		{"set as a key", "}\x8fNs.", 3, tensor.ErrMalformed, "is no key"},
		{"a list made of an int", "c__builtin__\nlist\nK\x01\x85R.", 21, tensor.ErrMalformed, "an int"},
		{"bytes made of a list", "c__builtin__\nbytes\n]\x85R.", 21, tensor.ErrMalformed, "a list"},
		{"bytes of text beyond latin-1", "c_codecs\nencode\n" + str("\u0100") + "\x85R.", 24, tensor.ErrMalformed, "latin-1"},
		{"copyreg without a class", "ccopyreg\n_reconstructor\n)R.", 25, tensor.ErrMalformed, "without a class"},
		{"list inside a tuple as a key", "}]\x85Ns.", 4, tensor.ErrMalformed, "a list is no key"},
		{"STACK_GLOBAL of ints", "K\x01K\x02\x93.", 4, tensor.ErrMalformed, "must be str"},
		{"GLOBAL that is not UTF-8", "cos\nsys\xff\n.", 0, tensor.ErrMalformed, "UTF-8"},
		{"GLOBAL without an end", "c" + strings.Repeat("x", 5000), 0, tensor.ErrMalformed, "4096"},
		{"GLOBAL cut off", "cos\nsys", 7, tensor.ErrTruncated, "truncated"},
		{"dict made of an int", "ccollections\nOrderedDict\nK\x01\x85R.", 28, tensor.ErrMalformed, "an int"},
		{"dict made of a list of ints", "ccollections\nOrderedDict\n]K\x01a\x85R.", 30, tensor.ErrMalformed, "pairs"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := load(test.pickle)
			fault, ok := errors.AsType[*tensor.FormatError](err)
			if !ok || p != nil {
				t.Fatalf("got %v, %v", p, err)
			}
			if fault.Off != test.off || fault.Err != test.reason || !strings.Contains(fault.Error(), test.about) {
				t.Errorf("got offset %d, %v: %v; want offset %d, %v, about %q", fault.Off, fault.Err, fault, test.off, test.reason, test.about)
			}
			if strings.Count(fault.Error(), "truncated") > 1 {
				t.Errorf("it is said twice: %v", fault)
			}
		})
	}
}

// TestBombs are pickles whose values would be huge if anybody wrote them out.
func TestBombs(t *testing.T) {
	doubled := "K\x01"
	for range 60 {
		doubled += "2\x86"
	}
	for _, test := range []struct {
		name, pickle string
		ok           bool
	}{
		{"doubled tuples", doubled + ".", true},
		{"doubled tuples as a key", "}" + doubled + "Ns.", false},
		{"keys that share a long tuple", "}(" + strings.Repeat(str(strings.Repeat("x", 1000)), 900) + "tq\x000" + strings.Repeat("h\x00K\x01\x86Ns", 2000) + ".", false},
		{"deep lists", strings.Repeat("]", 500000) + strings.Repeat("a", 499999) + ".", true},
		{"many marks", strings.Repeat("(", 1<<21) + "N.", false},
		{"many values", strings.Repeat("N", 1<<23) + ".", false},
		{"a set made of itself", "\x8fq\x00(h\x00\x90.", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p, err := load(test.pickle)
			runtime.ReadMemStats(&after)
			if (err == nil) != test.ok {
				t.Errorf("error %v", err)
			}
			if err == nil {
				AppendStr(nil, p.Root)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 1<<30 {
				t.Errorf("took %d bytes", n)
			}
		})
	}
}

// TestMemory copies one dict again and again: what is kept counts, not what stands in the file.
func TestMemory(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("}q\x00(")
	for i := range 1000 {
		b.WriteString("M")
		b.Write(binary.LittleEndian.AppendUint16(nil, uint16(i)))
		b.WriteString("N")
	}
	b.WriteString("u(ccollections\nOrderedDict\nq\x01" + strings.Repeat("h\x01h\x00\x85R", 1000) + ".")
	c := tensor.NewCursor(bytes.NewReader(b.Bytes()), int64(b.Len()), "test")
	m := &machine{c: c, left: 1 << 20}
	m.run()
	if err := c.Err(); !errors.Is(err, tensor.ErrUnsafe) || !strings.Contains(err.Error(), "memory") {
		t.Errorf("got %v", err)
	}
}

// TestLong leaves arrays that were pickled inline in the file.
func TestLong(t *testing.T) {
	big := strings.Repeat("x", maxString+1)
	p, err := load("\x80\x02" + str(big) + ".")
	if want := (Long{Off: 7, Len: maxString + 1}); err != nil || p.Root != want {
		t.Errorf("got %v, %v; want %v", p, err, want)
	}
	if _, err := load("}" + str(big) + "Ns."); err == nil {
		t.Error("a key of a mebibyte is accepted")
	}
}

// TestFollowing leaves the cursor behind STOP.
func TestFollowing(t *testing.T) {
	c := tensor.NewCursor(strings.NewReader("K\x01.K\x02.rest"), 10, "test")
	for want := int64(1); want <= 2; want++ {
		p, err := Load(c, func(Global) string { return "" })
		if err != nil || p.Root != want {
			t.Fatalf("got %v, %v", p, err)
		}
	}
	if c.Remaining() != 4 {
		t.Errorf("%d bytes remain, not 4", c.Remaining())
	}
}

func TestStr(t *testing.T) {
	for _, test := range []struct {
		value any
		want  string
	}{
		{"it's", "it's"}, {int64(-3), "-3"}, {true, "True"}, {nil, "None"},
		{1e16, "1e+16"}, {1e-5, "1e-05"}, {0.0001, "0.0001"}, {123456789012345.0, "123456789012345.0"},
		{math.Inf(-1), "-inf"}, {math.NaN(), "nan"}, {math.Copysign(0, -1), "-0.0"}, {1.5e300, "1.5e+300"},
		{&Tuple{Items: []any{"it's", `a"b'`, "\n\x00\u00e9\U0010ffff"}}, `("it's", 'a"b\'', '\n\x00é\U0010ffff')`},
		{Bytes("a\xff'"), `b"a\xff'"`},
		{Global{"torch", "float32"}, "torch.float32"},
	} {
		if got := string(AppendStr(nil, test.value)); got != test.want {
			t.Errorf("%#v: got %s, want %s", test.value, got, test.want)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"\x80\x02}q\x00(" + str("w") + "ctorch._utils\n_rebuild_tensor_v2\n(" + str("storage") + "tQtRu.",
		"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00]\x94(K\x01e.", "\x8f(\x8a\x01\xff\x90.", "ccollections\nOrderedDict\n)R}b.",
		"cm\nC\n)}\x92.", "}]\x85Ns.", "K\x01r\xff\xff\xff\x7f0j\xff\xff\xff\x7f.", "G\x3f\xb9\x99\x99\x99\x99\x99\x9a\x8b\x02\x00\x00\x00\x00\x80\x86.",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		checkMemory(t, b)
		p, err := load(string(b))
		if (p == nil) != (err != nil) {
			t.Fatalf("got %v, %v", p, err)
		}
		again, err2 := load(string(b))
		if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
			t.Fatalf("first %v, then %v", err, err2)
		}
		if err == nil && string(AppendStr(nil, p.Root)) != string(AppendStr(nil, again.Root)) {
			t.Fatal("two loads differ")
		}
	})
}

// checkMemory: what is allocated is in proportion to the pickle and to what charge counted of copies.
func checkMemory(t *testing.T, b []byte) {
	m := &machine{c: tensor.NewCursor(bytes.NewReader(b), int64(len(b)), "test"), left: maxMemory, opaque: func(Global) string { return "" }}
	before := allocated()
	m.run()
	charged := maxMemory - m.left
	if n := allocated() - before; n > 2<<20+128*uint64(len(b))+8*uint64(charged) {
		t.Errorf("%d bytes allocated for a pickle of %d and %d charged", n, len(b), charged)
	}
}

// allocated is exact to some pages. Unlike runtime.ReadMemStats it does not stop the program, which would take
// longer than most pickles.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

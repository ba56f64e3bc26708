package pickle

import "math/big"

// A loaded value is one of
//
//	nil, bool, int64, *big.Int, float64, string    None, bool, int, int, float, str
//	Bytes, Long                                    bytes; a str or bytes too long to keep
//	*Tuple, *List, *Set, *Dict                     the containers
//	Global                                         a class or function, by name
//	*Persistent                                    what the pickle leaves to its reader
//	*Object                                        everything that Python would have made by calling
//
// All of them can be compared with ==, containers by identity.

// Bytes is a bytes object or a bytearray.
type Bytes string

// Long stands for a str or bytes of more than maxString bytes, which stay in the file.
type Long struct{ Off, Len int64 }

// A Tuple cannot change after it was made, but what it holds can.
type Tuple struct{ Items []any }

// A List is a list.
type List struct{ Items []any }

// A Set keeps its elements in the order of the file.
type Set struct {
	Items  []any
	Frozen bool
}

// A Global is a class or function that the pickle names. It is never looked up.
type Global struct{ Module, Name string }

// String is the dotted name.
func (g Global) String() string { return g.Module + "." + g.Name }

// A Persistent is an object that lies outside the pickle, with the id that finds it.
type Persistent struct {
	ID  any
	Off int64 // of its opcode
}

// An Object is a stub for what a call or an instantiation would have made.
type Object struct {
	Class  any    // what was called: a Global, a *Persistent or an *Object
	Args   *Tuple // never nil
	States []any  // the arguments of BUILD and of keywords
	Items  []any  // what was appended or added
	Pairs  []Item // what was set by key
	Off    int64  // of its opcode
}

// Is tells whether o was made by that name of that module.
func (o *Object) Is(module, name string) bool {
	g, ok := o.Class.(Global)
	return ok && g.Module == module && g.Name == name
}

// kind is what a message calls a value.
func kind(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "a bool"
	case int64, *big.Int:
		return "an int"
	case float64:
		return "a float"
	case string:
		return "a str"
	case Bytes:
		return "bytes"
	case Long:
		return "a long string"
	case *Tuple:
		return "a tuple"
	case *List:
		return "a list"
	case *Set:
		return "a set"
	case *Dict:
		return "a dict"
	case Global:
		return "the class " + clip(v.String())
	case *Persistent:
		return "a persistent object"
	case *Object:
		return "an object of " + clip(className(v))
	}
	return "a value"
}

func className(o *Object) string {
	if g, ok := o.Class.(Global); ok {
		return g.String()
	}
	return "an unknown class"
}

// clip keeps a name from the file short enough for a message.
func clip(s string) string {
	const limit = 100
	if len(s) > limit {
		return s[:limit] + "…"
	}
	return s
}

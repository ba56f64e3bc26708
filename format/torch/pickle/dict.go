package pickle

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// An Item is one key of a dict with its value.
type Item struct{ Key, Value any }

// A Dict keeps the order of insertion, as Python's does: a key that is set again keeps its place and
// gets the new value.
type Dict struct {
	Items []Item
	index map[any]int
	attrs bool // instances have attributes, so that BUILD may set them
}

// Get finds the value of a str key; nil when there is none.
func (d *Dict) Get(key string) any {
	if i, ok := d.index[key]; ok {
		return d.Items[i].Value
	}
	return nil
}

// Has tells whether there is such a str key.
func (d *Dict) Has(key string) bool {
	_, ok := d.index[key]
	return ok
}

// set gives a key of that hash its value.
func (d *Dict) set(hash, key, value any) {
	if i, ok := d.index[hash]; ok {
		d.Items[i].Value = value
		return
	}
	if d.index == nil {
		d.index = make(map[any]int)
	}
	d.index[hash] = len(d.Items)
	d.Items = append(d.Items, Item{key, value})
}

// composite is the hash of a key that Python compares by its parts.
type composite string

// hashCost is the memory that a byte of a composite takes until it is written. Keys may share their parts,
// so that many are long in a short file.
const hashCost = 8

// hash gives keys that Python holds equal one comparable value: True, 1 and 1.0 are one key.
func hash(key any) (any, error) {
	switch k := key.(type) {
	case bool:
		if k {
			return int64(1), nil
		}
		return int64(0), nil
	case float64:
		if k == math.Trunc(k) && math.Abs(k) < 1<<53 {
			return int64(k), nil
		}
	case *big.Int:
		return composite(k.String()), nil
	case *Tuple:
		budget := maxKeyParts
		b, err := appendHash(nil, k, &budget)
		return composite(b), err
	case *List, *Dict:
		return nil, fmt.Errorf("%s is no key of a dict", kind(key))
	case *Set:
		if !k.Frozen {
			return nil, fmt.Errorf("%s is no key of a dict", kind(key))
		}
	case Long:
		return nil, fmt.Errorf("a key of %d bytes exceeds the limit of %d", k.Len, maxString)
	}
	return key, nil
}

// maxKeyParts bounds a tuple as a key: tuples that share their halves have 2^n parts.
const maxKeyParts = 1000

func appendHash(dst []byte, key any, budget *int) ([]byte, error) {
	if *budget--; *budget < 0 {
		return nil, fmt.Errorf("a tuple as a key exceeds the limit of %d parts", maxKeyParts)
	}
	if t, ok := key.(*Tuple); ok {
		dst = append(dst, '(')
		for _, item := range t.Items {
			var err error
			if dst, err = appendHash(dst, item, budget); err != nil {
				return nil, err
			}
		}
		return append(dst, ')'), nil
	}
	h, err := hash(key)
	if err != nil {
		return nil, err
	}
	part := fmt.Sprintf("%T %v", h, h)
	switch h.(type) {
	case *Object, *Persistent, *Set:
		part = fmt.Sprintf("%p", h)
	}
	if len(part) > maxString/maxKeyParts {
		return nil, fmt.Errorf("a tuple as a key has a part of %d bytes, the limit is %d", len(part), maxString/maxKeyParts)
	}
	dst = strconv.AppendInt(dst, int64(len(part)), 10)
	return append(append(dst, ':'), part...), nil
}

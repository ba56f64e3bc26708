package index

import (
	"cmp"
	"strings"
)

// key is a directory entry in the order of the tree: a file is compared as if the dot of its
// extension stood behind its stem, so that the order is the same in every view.
type key struct {
	name string
	leaf bool
}

// compare orders keys naturally: runs of digits by their value (0, 1, 2, 10), the rest by bytes. Equal
// values with other digits (`1`, `01`) are told apart by their bytes, so the order is total.
func compare(a, b key) int {
	i, j := 0, 0
	for {
		ca, cb := a.at(i), b.at(j)
		if ca < 0 || cb < 0 {
			if ca != cb {
				return cmp.Compare(ca, cb)
			}
			return strings.Compare(a.name, b.name)
		}
		if isDigit(ca) && isDigit(cb) {
			c, ni, nj := compareDigits(a.name, i, b.name, j)
			if c != 0 {
				return c
			}
			i, j = ni, nj
			continue
		}
		if ca != cb {
			return cmp.Compare(ca, cb)
		}
		i++
		j++
	}
}

// at is the byte at i, a dot behind a file's stem, -1 past the end.
func (k key) at(i int) int {
	switch {
	case i < len(k.name):
		return int(k.name[i])
	case i == len(k.name) && k.leaf:
		return '.'
	}
	return -1
}

// compareDigits compares the runs of digits at i and j by their value, and tells where they end.
func compareDigits(a string, i int, b string, j int) (c, ni, nj int) {
	for i < len(a) && a[i] == '0' {
		i++
	}
	for j < len(b) && b[j] == '0' {
		j++
	}
	si, sj := i, j
	for i < len(a) && isDigit(int(a[i])) {
		i++
	}
	for j < len(b) && isDigit(int(b[j])) {
		j++
	}
	return cmp.Or(cmp.Compare(i-si, j-sj), strings.Compare(a[si:i], b[sj:j])), i, j
}

func isDigit(c int) bool { return c >= '0' && c <= '9' }

// CompareNatural orders file names as the tree does.
func CompareNatural(a, b string) int { return compare(key{name: a}, key{name: b}) }

// NaturalLess tells whether a comes before b in that order.
func NaturalLess(a, b string) bool { return CompareNatural(a, b) < 0 }

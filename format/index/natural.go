package index

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
				return sign(ca - cb)
			}
			return byBytes(a.name, b.name)
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
			return sign(ca - cb)
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
	if d := (i - si) - (j - sj); d != 0 {
		return sign(d), i, j
	}
	return byBytes(a[si:i], b[sj:j]), i, j
}

func isDigit(c int) bool { return c >= '0' && c <= '9' }

func byBytes(a, b string) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	if n > 0 {
		return 1
	}
	return 0
}

// NaturalLess orders file names as the tree does.
func NaturalLess(a, b string) bool { return compare(key{name: a}, key{name: b}) < 0 }

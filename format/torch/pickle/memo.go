package pickle

// A memo maps numbers to values. Picklers count from 0, so it is a slice; a number that is not the
// next one goes into a map, so that PUT 2^31-1 costs one entry.
type memo struct {
	dense  []any
	sparse map[uint32]any // all keys beyond len(dense)
}

func (m *memo) len() int { return len(m.dense) + len(m.sparse) }

func (m *memo) get(i uint32) (any, bool) {
	if uint64(i) < uint64(len(m.dense)) {
		return m.dense[i], true
	}
	v, ok := m.sparse[i]
	return v, ok
}

// put reports whether the entry is new.
func (m *memo) put(i uint32, v any) bool {
	if uint64(i) < uint64(len(m.dense)) {
		m.dense[i] = v
		return false
	}
	_, known := m.sparse[i]
	if uint64(i) > uint64(len(m.dense)) {
		if m.sparse == nil {
			m.sparse = make(map[uint32]any)
		}
		m.sparse[i] = v
		return !known
	}
	delete(m.sparse, i)
	m.dense = append(m.dense, v)
	m.migrate()
	return !known
}

// migrate takes the entries over that have become the next ones.
func (m *memo) migrate() {
	for len(m.sparse) > 0 {
		i := uint32(len(m.dense))
		v, ok := m.sparse[i]
		if !ok {
			return
		}
		delete(m.sparse, i)
		m.dense = append(m.dense, v)
	}
}

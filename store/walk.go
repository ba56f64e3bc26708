package store

// A Found is a checkpoint of a library: its path in the tree and its place, or why that is not known.
type Found struct {
	Name  string
	Place Place
	Err   error
}

// Walk finds every checkpoint of the library, in the order of the tree, and opens none.
func (l *Library) Walk(visit func(Found)) { l.root.walk(visit) }

func (f *folder) walk(visit func(Found)) {
	for _, e := range f.list() {
		if e.scan != nil {
			f.lib.folder(f.child(e.name), e).walk(visit)
			continue
		}
		place, err := e.resolve()
		visit(Found{Name: f.child(e.name)[1:], Place: place, Err: err})
	}
}

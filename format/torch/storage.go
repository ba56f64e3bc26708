package torch

import (
	"fmt"
	"math/bits"

	"weightfs/format/tensor"
	"weightfs/format/torch/pickle"
)

// A storageID is what a pickle says of a storage: which one, of what, and how long.
type storageID struct {
	elem  elem
	key   string
	numel int64 // of elem
	bytes int64 // that they take

	// In the legacy format a storage can be a part of another, in elements.
	view         bool
	first, count int64
}

// A storage is where the bytes lie.
type storage struct {
	name     string // what the file calls it
	extent   tensor.Extent
	pack     tensor.Pack
	unpacked int64 // of the whole record
	crc      uint32
	from     int64 // the storage is the bytes [from, from+size) of the unpacked record
	size     int64
	swap     bool
}

// isStorage tells a storage from the classes of modules that the legacy format keeps.
func isStorage(p *pickle.Persistent) bool {
	t, ok := p.ID.(*pickle.Tuple)
	return ok && len(t.Items) > 0 && text(t.Items[0]) == "storage"
}

// parseID reads ("storage", class, key, location, numel[, view]). The location (a device) has no
// meaning in a file.
func parseID(p *pickle.Persistent) (id storageID, err error) {
	t, ok := p.ID.(*pickle.Tuple)
	if !ok || len(t.Items) < 5 || !isStorage(p) {
		return id, malformed("a persistent id is no storage")
	}
	if id.elem, ok = storageElem(t.Items[1]); !ok {
		return id, &unshowable{fmt.Sprintf("its storage is of the unknown class %s", pickle.AppendStr(nil, t.Items[1]))}
	}
	switch key := t.Items[2].(type) {
	case string, int64, pickle.Bytes:
		id.key = text(key)
	default:
		return id, malformed("the key of a storage is neither a str nor an int")
	}
	if id.numel, err = integer(t.Items[4], "the number of elements of a storage"); err != nil {
		return id, err
	}
	hi, lo := bits.Mul64(uint64(id.numel), uint64(id.elem.size))
	if id.numel < 0 || hi != 0 || lo > 1<<63-1 {
		return id, malformed("storage %q has %d elements of %d bytes", clip(id.key), id.numel, id.elem.size)
	}
	id.bytes = int64(lo)
	return id, id.parseView(t.Items[5:])
}

// parseView reads None or (key, offset, size), which torch wrote before 0.4.
func (id *storageID) parseView(rest []any) (err error) {
	if len(rest) == 0 || rest[0] == nil {
		return nil
	}
	t, ok := rest[0].(*pickle.Tuple)
	if !ok || len(t.Items) != 3 {
		return malformed("the view of storage %q is no tuple of three", clip(id.key))
	}
	id.view = true
	if id.first, err = integer(t.Items[1], "the offset of a storage's view"); err != nil {
		return err
	}
	if id.count, err = integer(t.Items[2], "the size of a storage's view"); err != nil {
		return err
	}
	if id.first < 0 || id.count < 0 || id.first > id.numel || id.count > id.numel-id.first {
		return malformed("a view of elements %d to %d leaves storage %q of %d", id.first, id.first+id.count, clip(id.key), id.numel)
	}
	return nil
}

package torch

import (
	"errors"
	"io"
	"math/big"

	"weightfs/format/tensor"
	"weightfs/format/torch/pickle"
)

// legacyMagic is what the first pickle of a file holds, legacyProtocol the second.
var legacyMagic, _ = new(big.Int).SetString("1950a86a20f9469cfc6c", 16)

const legacyProtocol = 1001

// parseLegacy reads what torch.save wrote before 1.6: five pickles (magic number, protocol, facts
// about the machine, the object, the keys of its storages), then for each key the number of elements
// and the elements. These are little-endian on all machines, whatever the third pickle says.
func parseLegacy(r io.ReaderAt, size int64) (*tensor.Header, error) {
	c := tensor.NewCursor(r, size, formatName)
	if err := legacyHead(c); err != nil {
		return nil, err
	}
	object, err := pickle.Load(c, opaque)
	if err != nil {
		return nil, err
	}
	storages, err := legacyStorages(c, object)
	if err != nil {
		return nil, err
	}
	h := &tensor.Header{Format: formatName}
	warnTrailing(h, c)
	if err := findTensors(h, object, storages.find); err != nil {
		return nil, err
	}
	return h, nil
}

func legacyHead(c *tensor.Cursor) error {
	magic, err := pickle.Load(c, opaque)
	if n, ok := rootOf(magic).(*big.Int); err != nil || !ok || n.Cmp(legacyMagic) != 0 {
		return fault(0, tensor.ErrMalformed, "a pickle, but not of torch.save: it does not begin with the magic number %#x", legacyMagic)
	}
	at := c.Off()
	protocol, err := pickle.Load(c, opaque)
	if err != nil {
		return err
	}
	if protocol.Root != int64(legacyProtocol) {
		return fault(at, tensor.ErrUnsupported, "protocol %s of the legacy format, only %d is known",
			pickle.AppendStr(nil, protocol.Root), legacyProtocol)
	}
	_, err = pickle.Load(c, opaque)
	return err
}

func rootOf(p *pickle.Pickle) any {
	if p == nil {
		return nil
	}
	return p.Root
}

// legacyTable holds the storages of a legacy file by key.
type legacyTable map[string]*storage

// legacyStorages lays out the storages behind the pickles. The sizes of elements are known from the
// persistent ids alone, so those come first.
func legacyStorages(c *tensor.Cursor, object *pickle.Pickle) (legacyTable, error) {
	sizes := make(map[string]int64)
	for _, p := range object.Persistent {
		id, err := parseID(p)
		if flaw, ok := errors.AsType[*flaw](err); ok && isStorage(p) {
			return nil, fault(p.Off, flaw.reason, "%s", flaw.msg)
		}
		if _, ok := sizes[id.key]; err == nil && !ok {
			sizes[id.key] = id.elem.size
		}
	}
	at := c.Off()
	list, err := pickle.Load(c, opaque)
	if err != nil {
		return nil, err
	}
	keys, ok := list.Root.(*pickle.List)
	if !ok {
		return nil, fault(at, tensor.ErrMalformed, "the keys of the storages are %s, no list", pickle.AppendStr(nil, list.Root))
	}
	table := make(legacyTable, len(keys.Items))
	for _, item := range keys.Items {
		if err := table.add(c, text(item), sizes); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// add reads the number of elements of a storage and passes over them.
func (t legacyTable) add(c *tensor.Cursor, key string, sizes map[string]int64) error {
	at := c.Off()
	size, ok := sizes[key]
	if !ok {
		return fault(at, tensor.ErrMalformed, "storage %q is listed, but the pickle does not say of what", clip(key))
	}
	if t[key] != nil {
		return fault(at, tensor.ErrMalformed, "storage %q is listed twice", clip(key))
	}
	n := c.U64("number of elements")
	if c.Err() != nil {
		return c.Err()
	}
	if n > uint64(c.Remaining()/size) {
		return fault(at, tensor.ErrTruncated, "truncated: storage %q of %d elements of %d bytes, but only %d bytes remain",
			clip(key), n, size, c.Remaining())
	}
	bytes := int64(n) * size
	t[key] = &storage{name: key, extent: tensor.Extent{Off: c.Off(), Len: bytes}, unpacked: bytes, size: bytes}
	c.Skip(uint64(bytes), "storage")
	return c.Err()
}

// find gives the storage, or the part of it that a view is.
func (t legacyTable) find(id *storageID) (*storage, error) {
	st := t[id.key]
	switch {
	case st == nil:
		return nil, malformed("the file has no storage %q", clip(id.key))
	case st.size != id.bytes:
		return nil, malformed("storage %q has %d bytes, but the pickle says %d elements of %d bytes",
			clip(id.key), st.size, id.numel, id.elem.size)
	case !id.view:
		return st, nil
	}
	part := *st
	part.from, part.size = id.first*id.elem.size, id.count*id.elem.size
	return &part, nil
}

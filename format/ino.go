package format

// Inode numbers are small and the same from mount to mount: the fixed files from inoTop on, then
// inoSlots numbers a node of the index, one for each view, and from inoRows on the slices of rows/.
const (
	inoRoot  = 1
	inoTop   = 2
	inoNodes = 4096 // side files and the first of the checkpoint's own files are numbered below it
	inoSlots = 16
	inoRows  = 1 << 46
)

// Where the numbers of assembled/ and files/ begin: both have few entries, but for sets of thousands of
// files.
const (
	inoAssembled = 64
	inoFiles     = 2048
	inoMoreFiles = 1 << 45
)

// The slots of inode numbers, of which the parts view takes two.
const (
	slotRaw = iota
	slotJSON
	slotNPY
	slotF32
	slotRows
	slotStats
	slotParts
	slotPartsDir
	slotByName
)

// ino is a number within the checkpoint as it shows: of many in one mount each has its own range.
func (c *Checkpoint) ino(n uint64) uint64 { return c.opt.InoBase + n }

// ownIno is the number of an entry of files/.
func (c *Checkpoint) ownIno(i int) uint64 {
	n := inoFiles + 1 + uint64(i)
	if n >= inoNodes {
		n += inoMoreFiles
	}
	return c.ino(n)
}

// nodeIno is the number of a node of the index in the view of a slot.
func (c *Checkpoint) nodeIno(slot int, node uint32) uint64 {
	return c.ino(inoNodes + uint64(node)*inoSlots + uint64(slot))
}

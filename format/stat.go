package format

import iofs "io/fs"

// shardStat is what shows of a file on the disk: its time, its owner, its bits of reading.
func shardStat(s *Shard) Stat {
	st := Stat{Mode: s.stat.Mode().Perm() & 0o444, ModTime: s.stat.ModTime()}
	st.UID, st.GID = Owner(s.stat)
	return st
}

// fileStat is the Stat of a regular file, with time, owner and bits of base.
func (c *Checkpoint) fileStat(base Stat, ino uint64, size int64) Stat {
	base.Ino, base.Gen, base.Size, base.Nlink = ino, c.opt.Gen, size, 1
	return base
}

// dirStat is the Stat of a directory, which those may enter who may read.
func (c *Checkpoint) dirStat(ino uint64) Stat {
	st := c.spanning
	st.Ino, st.Gen, st.Nlink = ino, c.opt.Gen, 2
	st.Mode |= iofs.ModeDir | st.Mode>>2
	return st
}

package format

// raw/: the elements and nothing else.

func rawSize(c *Checkpoint, t uint32) int64 { return c.index.Records[t].Bytes }

func openRaw(c *Checkpoint, t uint32) (Content, error) { return c.Elements(int(t)) }

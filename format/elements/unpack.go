package elements

import (
	"bufio"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"weightfs/format/tensor"
)

const unpackBuffer = 128 << 10

// unpackTo writes what a packed range holds, which must be exactly as many bytes as declared.
func unpackTo(w io.Writer, key packedRange) error {
	out := &exact{w: w, left: key.unpacked}
	src := bufio.NewReaderSize(io.NewSectionReader(key.src, key.extent.Off, key.extent.Len), unpackBuffer)
	err := error(nil)
	switch {
	case key.pack == tensor.Deflate:
		_, err = io.CopyBuffer(out, flate.NewReader(src), make([]byte, unpackBuffer))
	case key.pack == tensor.Varint && key.width <= 8:
		err = copyVarints(out, src, int(key.width))
	case key.pack == tensor.Fields:
		err = copyFields(out, src, int(min(key.width, 8)))
	default:
		err = fmt.Errorf("%w: packing %d of %d bytes", tensor.ErrUnsupported, key.pack, key.width)
	}
	switch {
	case err != nil:
	case out.left > 0:
		err = fmt.Errorf("%d of the declared %d bytes are missing: %w", out.left, key.unpacked, io.ErrUnexpectedEOF)
	case key.crc != 0 && key.crc != out.crc:
		err = fmt.Errorf("%w: checksum is %08x, not %08x", tensor.ErrMalformed, out.crc, key.crc)
	}
	if err != nil {
		return fmt.Errorf("unpacking the %d bytes at offset %d: %w", key.extent.Len, key.extent.Off, err)
	}
	return nil
}

// An exact writer passes on at most as many bytes as are declared, and sums them up.
type exact struct {
	w    io.Writer
	left int64
	crc  uint32
}

func (e *exact) Write(p []byte) (int, error) {
	if int64(len(p)) > e.left {
		return 0, fmt.Errorf("%w: more bytes come out than declared", tensor.ErrMalformed)
	}
	e.left -= int64(len(p))
	e.crc = crc32.Update(e.crc, crc32.IEEETable, p)
	return e.w.Write(p)
}

// copyVarints writes the low width bytes of every varint.
func copyVarints(w io.Writer, src io.ByteReader, width int) error {
	buf := make([]byte, 0, unpackBuffer)
	for {
		value, err := binary.ReadUvarint(src)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil || len(buf)+8 > cap(buf) {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
		if err != nil {
			return nil
		}
		buf = binary.LittleEndian.AppendUint64(buf, value)[:len(buf)+width]
	}
}

// copyFields writes the values of protobuf fields, of varints the low width bytes.
func copyFields(w io.Writer, src *bufio.Reader, width int) error {
	out := bufio.NewWriterSize(w, unpackBuffer)
	for {
		key, err := binary.ReadUvarint(src)
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		value, err := fieldValue(src, key&7, width)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		if _, err := out.Write(value); err != nil {
			return err
		}
	}
}

// fieldValue reads a value by its wire type.
func fieldValue(src *bufio.Reader, wire uint64, width int) ([]byte, error) {
	var value [8]byte
	switch wire {
	case 0:
		number, err := binary.ReadUvarint(src)
		binary.LittleEndian.PutUint64(value[:], number)
		return value[:width], err
	case 1:
		_, err := io.ReadFull(src, value[:])
		return value[:], err
	case 5:
		_, err := io.ReadFull(src, value[:4])
		return value[:4], err
	}
	return nil, fmt.Errorf("%w: a field of wire type %d", tensor.ErrMalformed, wire)
}

// Command weightfs shows every tensor of a machine-learning checkpoint as a file.
//
// Package cli is the command line. Of the others each imports only what stands below it:
//
//	fs                  a tree as a FUSE file system; mounts, and how they end
//	transfer            files of a tree, copied to a disk
//	compare             in what two checkpoints differ
//	metrics             what a mount does, counted for Prometheus
//	store               what a user calls a model: the caches of the hub and of Ollama, directories of many
//	format              a checkpoint as a tree: a file for each tensor in each view
//	digest              hashes and statistics of tensors, kept
//	format/set          which files a checkpoint is made of
//	format/detect       what a file is, by its content
//	format/index        the tensors and the tree over their names, in flat arrays
//	format/names        tensors chosen by name, and called otherwise
//	format/decode       stored elements as float32
//	format/elements     stored elements as raw/ shows them
//	format/safetensors  the parsers: of safetensors,
//	format/gguf         of GGUF,
//	format/torch        of what torch.save writes,
//	format/torch/pickle and its pickles as data,
//	format/numpy        of .npy and .npz,
//	format/onnx         of ONNX
//	format/zipfile      the directory of a zip file, for .npz and torch.save
//	format/tensor       tensors with their type, shape and place; faults of a file
//	mmap                files mapped for the kernel to copy from
//	disk                regular files, opened without waiting
//	cachedir            what may be computed again, and where it is kept
//	sandbox             what a server takes from itself
//
// Package faults is of tests alone, which break what lies under a live mount.
package main

import (
	"os"

	"weightfs/cli"
)

func main() { os.Exit(cli.Main(os.Args)) }

#!/usr/bin/env bash
# Makes a stand-in for the final base of deploy/Dockerfile under its name, for a machine that reaches Debian's mirror and no registry
# of images. `--name` only prints the name.
set -euo pipefail
cd "$(dirname "$0")"
name=$(sed -n 's/^ARG BASE_IMAGE=//p' ../../deploy/Dockerfile)
[ "${1:-}" = --name ] || docker build --network host --tag "$name" - <base.Dockerfile
echo "$name"

#!/bin/sh
# embed.sh PROGRAM OUTPUT.S: an assembler file that holds the program's bytes as zygote_program.
set -eu
cat > "$2" <<END
    .section .rodata
    .global zygote_program, zygote_program_end
    .balign 16
zygote_program:
    .incbin "$1"
zygote_program_end:
    .section .note.GNU-stack, "", @progbits
END

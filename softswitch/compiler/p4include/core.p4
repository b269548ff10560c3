/* The P4_16 core library: what the language specification puts in every program's reach. */

#ifndef _CORE_P4_
#define _CORE_P4_

error {
    NoError,               // all is well
    PacketTooShort,        // the packet ended before the header did
    NoMatch,               // no case of a select matched
    StackOutOfBounds,      // a header stack is full, or empty
    HeaderTooShort,        // a varbit field would be longer than its maximum
    ParserTimeout,         // the parser took too long
    ParserInvalidArgument  // e.g. a varbit length that is no multiple of 8
}

match_kind {
    exact,
    ternary,
    lpm
}

/* The packet as the parser sees it. */
extern packet_in {
    /* Reads a header of fixed size and advances. */
    void extract<T>(out T hdr);
    /* Reads a header whose varbit field takes `variableFieldSizeInBits`, and advances. */
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);
    /* Reads without advancing. */
    T lookahead<T>();
    /* Skips bits. */
    void advance(in bit<32> sizeInBits);
    /* The whole packet's length in bytes. */
    bit<32> length();
}

/* The packet as the deparser writes it. */
extern packet_out {
    /* Appends a header if it is valid; a stack, union or struct member by member. */
    void emit<T>(in T hdr);
}

/* In a parser: rejects the packet with `toSignal` unless `check` holds. */
extern void verify(in bool check, in error toSignal);

/* Does nothing; the default of a table that names no other. */
@noWarn("unused")
action NoAction() {}

/* Checked at compile time. */
extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

#endif

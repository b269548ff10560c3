header lanes_h {
    bit<32> d0;
    bit<32> d1;
    bit<32> d2;
    bit<32> d3;
    bit<32> d4;
    bit<32> d5;
    bit<32> d6;
    bit<32> d7;
}

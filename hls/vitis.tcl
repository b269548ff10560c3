# For whoever has Vitis HLS:  vitis_hls -f hls/vitis.tcl   (from the repository's root)
# Not run by the project: no initiation interval, area or frequency of a kernel is known (docs/explanation/rtl.md).
# Simulates the kernels in C, synthesizes each for a U50 at 250 MHz, and exports it as an IP core under build/vitis/.
set root [pwd]
set flags "-std=c++17 -I$root/hls -I$root/wire/generated"
file mkdir $root/build/vitis
cd $root/build/vitis

foreach kernel {float_to_int int_to_float sender consumer glm_forward glm_activation glm_scale glm_backward ring_pass} {
  open_project -reset $kernel
  set_top catchment::hls_model::$kernel
  foreach source {convert.cpp sender.cpp consumer.cpp glm_engine.cpp ring_pass.cpp} {
    add_files $root/hls/$source -cflags $flags
  }
  add_files -tb $root/hls/csim.cpp -cflags $flags
  open_solution -reset u50 -flow_target vivado
  set_part xcu50-fsvh2104-2-e
  create_clock -period 4 -name default
  csim_design
  csynth_design
  export_design -format ip_catalog -output $root/build/vitis/$kernel.zip
  close_project
}
exit

# Tests of a cross build, which run in an emulator: a part of test_sources.
#
# These files test code that depends on the processor: kernels, and the byte order of hashes, layouts and files. The
# files in tests/golden/ were written by another program on another machine.
set(files "bulk_insert|fill_statistics|(damaged_|golden_|shared_)?file|file_limits|fold|hash_span|hashes|layout")
string(APPEND files "|kernels|kernel_sets|kernel_choice|quotient|quotient_filter|quotient_growth|single_key")
list(FILTER test_sources INCLUDE REGEX "/(${files})_test\\.cpp$")

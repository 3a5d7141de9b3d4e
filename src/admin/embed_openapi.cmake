# cmake -DIN=openapi.json -DOUT=openapi_document.cc -DVERSION=0.1.0 -P embed_openapi.cmake
# A text file as a constant of the program, with @VERSION@ replaced: needs no tool beside CMake. Bytes, not a string
# literal: compilers need not take literals beyond 64 KiB.
cmake_policy(VERSION 3.25)
file(READ "${IN}" text)
string(REPLACE "@VERSION@" "${VERSION}" text "${text}")
file(WRITE "${OUT}.txt" "${text}")
file(READ "${OUT}.txt" bytes HEX)
file(REMOVE "${OUT}.txt")
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${OUT}" "#include \"admin/openapi.h\"
namespace leasehold::admin {
namespace {
constexpr char kDocument[] = {
${bytes}};
}  // namespace
std::string_view OpenApiDocument() { return {kDocument, sizeof kDocument}; }
}  // namespace leasehold::admin
")

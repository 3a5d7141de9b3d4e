#include "fuzz/mutator.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/check.h"

namespace leasehold::fuzz {
namespace {

// Bytes that formats give a meaning to.
constexpr char kBytesText[] = "\0\1\x7f\x80\xff\r\n\t :;,=\"'\\/{}[]0159-+.*$";
constexpr std::string_view kBytes(kBytesText, sizeof(kBytesText) - 1);

std::string_view Piece(std::string_view from, base::Random& random) {
  if (from.empty()) return {};
  const size_t at = random.Below(from.size());
  return from.substr(at, 1 + random.Below(std::min<size_t>(from.size() - at, 64)));
}

// A decimal number somewhere in the input becomes another: lengths, sizes and counts.
void ChangeNumber(std::string& input, base::Random& random) {
  const size_t from = random.Below(input.size());
  const size_t begin = input.find_first_of("0123456789", from);
  if (begin == std::string::npos) return;
  size_t end = begin;
  while (end < input.size() && input[end] >= '0' && input[end] <= '9') ++end;
  uint64_t value = 0;
  (void)std::from_chars(input.data() + begin, input.data() + end, value);
  switch (random.Below(4)) {
    case 0: ++value; break;
    case 1: --value; break;
    case 2: value = random.Below(300); break;
    default: value = random.Next() >> random.Below(64); break;
  }
  input.replace(begin, end - begin, std::to_string(value));
}

}  // namespace

Mutator::Mutator(const std::vector<std::string>& corpus, const std::vector<std::string>& dictionary,
                 size_t bytes_max)
    : corpus_(corpus), dictionary_(dictionary), bytes_max_(bytes_max) {
  CHECK(!corpus_.empty(), "a mutator needs a corpus");
}

std::string Mutator::Make(size_t index) const {
  base::Random random(index);
  std::string input = corpus_[random.Below(corpus_.size())];
  const uint64_t changes = 1 + random.Below(6);
  for (uint64_t i = 0; i < changes; ++i) Change(input, random);
  if (input.size() > bytes_max_) input.resize(bytes_max_);
  return input;
}

void Mutator::Insert(std::string& input, std::string_view piece, base::Random& random) const {
  input.insert(random.Below(input.size() + 1), std::string(piece));
}

void Mutator::Change(std::string& input, base::Random& random) const {
  const std::string& other = corpus_[random.Below(corpus_.size())];
  if (input.empty()) return Insert(input, Piece(other, random), random);
  const size_t at = random.Below(input.size());
  const size_t size = Piece(std::string_view(input).substr(at), random).size();
  switch (random.Below(10)) {
    case 0: input[at] = static_cast<char>(input[at] ^ (1 << random.Below(8))); return;
    case 1: input[at] = static_cast<char>(random.Below(256)); return;
    case 2: input[at] = kBytes[random.Below(kBytes.size())]; return;
    case 3: input.erase(at, size); return;
    case 4: return Insert(input, input.substr(at, size), random);
    case 5: return Insert(input, Piece(other, random), random);
    case 6: return ChangeNumber(input, random);
    case 7: input.resize(at); return;
    case 8:  // the front of this, the back of the other
      input.replace(at, std::string::npos, other, std::min(other.size(), at), std::string::npos);
      return;
    default: break;
  }
  if (dictionary_.empty())
    return Insert(input, kBytes.substr(random.Below(kBytes.size()), 1), random);
  const std::string& word = dictionary_[random.Below(dictionary_.size())];
  if (random.Below(2) == 0) return Insert(input, word, random);
  input.replace(at, std::min(word.size(), input.size() - at), word);
}

std::vector<std::string> ParseDictionary(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t begin = line.find('"');
    const size_t last = line.rfind('"');
    if (line.starts_with('#') || begin == last) continue;
    std::string word;
    for (size_t i = begin + 1; i < last; ++i) {
      if (line[i] != '\\') {
        word += line[i];
      } else if (line[i + 1] != 'x') {
        word += line[++i];
      } else {
        int code = 0;
        (void)std::from_chars(line.data() + i + 2, line.data() + i + 4, code, 16);
        word += static_cast<char>(code);
        i += 3;
      }
    }
    words.push_back(word);
  }
  return words;
}

}  // namespace leasehold::fuzz

#include "admin/problem.h"

#include "base/json_writer.h"

namespace leasehold::admin {
namespace {

std::string Title(std::string_view code) {
  std::string title(code);
  for (char& c : title) {
    if (c == '_') c = ' ';
  }
  if (!title.empty() && title[0] >= 'a' && title[0] <= 'z') {
    title[0] = static_cast<char>(title[0] - 'a' + 'A');
  }
  return title;
}

}  // namespace

std::string ProblemJson(int status, std::string_view code, std::string_view detail) {
  std::string out;
  base::JsonWriter json(out);
  json.BeginObject().Member("type", "urn:leasehold:problem:" + std::string(code));
  json.Member("title", Title(code)).Key("status").Int(status).Member("detail", detail);
  json.EndObject();
  return out;
}

HttpAnswer ProblemAnswer(int status, std::string_view code, std::string_view detail) {
  HttpAnswer answer;
  answer.status = status;
  answer.content_type = "application/problem+json";
  answer.body = ProblemJson(status, code, detail);
  return answer;
}

}  // namespace leasehold::admin

#include "gaugeblock/verify/report/isolated.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/variants/device_run.h"

namespace gaugeblock {
namespace {

using Json = nlohmann::json;
using Bytes = std::vector<std::uint8_t>;

// CBOR, because JSON text has no NaN and no infinity.
Json to_json(const CaseVerdict& result) {
  const Verdict& v = result.verdict;
  return {{"outcome", static_cast<int>(v.outcome)},
          {"reason", v.reason},
          {"ratio", v.worst_ratio},
          {"likely", v.worst_likely_ratio},
          {"tensor", v.worst.tensor},
          {"index", v.worst.index},
          {"element", v.worst.element},
          {"actual", v.worst.actual},
          {"expected", v.worst.expected},
          {"bound", v.worst.bound},
          {"sigma", v.worst.sigma},
          {"claim", v.worst.claim},
          {"compared", v.compared},
          {"vacuous", v.vacuous_elements},
          {"message", result.message}};
}

CaseVerdict verdict_from(const Json& json) {
  CaseVerdict result;
  Verdict& v = result.verdict;
  v.outcome = static_cast<Outcome>(json.at("outcome").get<int>());
  v.reason = json.at("reason");
  v.worst_ratio = json.at("ratio");
  v.worst_likely_ratio = json.at("likely");
  v.worst.tensor = json.at("tensor");
  v.worst.index = json.at("index").get<std::vector<Index>>();
  v.worst.element = json.at("element");
  v.worst.actual = json.at("actual");
  v.worst.expected = json.at("expected");
  v.worst.bound = json.at("bound");
  v.worst.sigma = json.at("sigma");
  v.worst.claim = json.at("claim");
  v.compared = json.at("compared");
  v.vacuous_elements = json.at("vacuous");
  result.message = json.at("message");
  return result;
}

bool write_all(int socket, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

/// `patience_ms` < 0: however long it takes.
bool read_all(int socket, void* data, std::size_t bytes, int patience_ms) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    pollfd wait{socket, POLLIN, 0};
    const int ready = poll(&wait, 1, patience_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t count = ::read(socket, at, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}

// A message: its length in bytes, then CBOR.
bool write_message(int socket, const Bytes& message) {
  const auto bytes = static_cast<std::uint32_t>(message.size());
  return write_all(socket, &bytes, sizeof bytes) && write_all(socket, message.data(), message.size());
}

std::optional<Bytes> read_message(int socket, int patience_ms) {
  std::uint32_t bytes = 0;
  if (!read_all(socket, &bytes, sizeof bytes, patience_ms)) return std::nullopt;
  Bytes message(bytes);
  if (!read_all(socket, message.data(), bytes, patience_ms)) return std::nullopt;
  return message;
}

/// Starts a process that runs `body` on its end of a socket and ends; the parent's end and the process.
template <class Body>
std::pair<int, int> start_child(const Body& body) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw DeviceFailure(fmt::format("cannot make a socket for a child process: {}", std::strerror(errno)));
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    throw DeviceFailure(fmt::format("cannot start a child process: {}", std::strerror(errno)));
  }
  if (child == 0) {
    // Another child's socket kept open here would hide that child's end from the parent.
    const auto own = static_cast<unsigned>(ends[1]);
    if (own > 3) close_range(3, own - 1, 0);
    close_range(own + 1, ~0U, 0);
    body(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  return {ends[0], child};
}

}  // namespace

IsolatedChecker::IsolatedChecker(const std::vector<Variant>& variants, double patience_seconds)
    : variants_(variants), patience_seconds_(patience_seconds) {
  start();
}

IsolatedChecker::~IsolatedChecker() {
  stop();
}

IsolatedChecker::IsolatedChecker(IsolatedChecker&& other) noexcept
    : variants_(other.variants_),
      patience_seconds_(other.patience_seconds_),
      process_(std::exchange(other.process_, -1)),
      socket_(std::exchange(other.socket_, -1)),
      silent_(other.silent_) {}

void IsolatedChecker::start() {
  silent_ = false;
  std::tie(socket_, process_) = start_child([this](int socket) { serve(socket); });
}

std::string IsolatedChecker::stop() {
  if (process_ < 0) return {};
  close(socket_);  // its end of file tells the child to end
  if (silent_) kill(process_, SIGKILL);
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = socket_ = -1;
  if (silent_) return fmt::format("it gave no answer within {:g} s", patience_seconds_);
  if (WIFSIGNALED(status))
    return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

bool IsolatedChecker::send(const Bytes& message) {
  return write_message(socket_, message);
}

std::optional<Bytes> IsolatedChecker::receive() {
  std::optional<Bytes> message = read_message(socket_, static_cast<int>(1000 * patience_seconds_));
  if (message) return message;
  // Either the child is gone, or it is silent: only the first can be waited for.
  pollfd state{socket_, POLLIN, 0};
  silent_ = poll(&state, 1, 0) == 0;
  return std::nullopt;
}

void IsolatedChecker::serve(int socket) {
  while (const std::optional<Bytes> message = read_message(socket, -1)) {
    try {
      const Json request = Json::from_cbor(*message);
      const Case c = parse_case(request.at("case").get<std::string>());
      std::vector<const Variant*> chosen;
      for (const std::size_t index : request.at("variants")) chosen.push_back(&variants_[index]);
      check_case(chosen, c, static_cast<RelationEffort>(request.at("effort").get<int>()),
                 [&](std::size_t i, const CaseVerdict& result) {
                   Json answer = to_json(result);
                   const bool lost =
                       result.verdict.outcome == Outcome::error && device_is_lost(chosen[i]->backend);
                   answer["lost"] = lost;
                   if (!write_message(socket, Json::to_cbor(answer)) || lost) _exit(0);
                 });
    } catch (const InputError& refusal) {
      if (!write_message(socket, Json::to_cbor(Json{{"refused", refusal.what()}}))) _exit(0);
    }
  }
  _exit(0);
}

std::vector<CaseVerdict> IsolatedChecker::check(const std::vector<const Variant*>& chosen, const Case& c,
                                                RelationEffort effort) {
  std::vector<CaseVerdict> results;
  while (results.size() < chosen.size()) {
    if (process_ < 0) start();
    Json request{{"case", print_case(c)}, {"effort", static_cast<int>(effort)}, {"variants", Json::array()}};
    for (std::size_t i = results.size(); i < chosen.size(); ++i)
      request["variants"].push_back(chosen[i] - variants_.data());
    bool alive = send(Json::to_cbor(request));
    while (alive && results.size() < chosen.size()) {
      const std::optional<Bytes> message = receive();
      if (!message) {
        alive = false;
        break;
      }
      const Json answer = Json::from_cbor(*message);
      if (answer.contains("refused")) throw InputError(answer.at("refused").get<std::string>());
      results.push_back(verdict_from(answer));
      if (!answer.at("lost").get<bool>()) continue;
      stop();
      break;
    }
    if (alive) continue;
    CaseVerdict died;
    died.verdict.outcome = Outcome::error;
    died.verdict.reason = "error";
    died.message = fmt::format("the process that ran it ended: {}", stop());
    results.push_back(died);
  }
  return results;
}

std::optional<std::string> cuda_refusal() {
  const auto [socket, process] = start_child([](int own) {
    std::string reason;
    try {
      cuda_device();
    } catch (const std::exception& refusal) {
      reason = refusal.what();
    }
    write_message(own, Bytes(reason.begin(), reason.end()));
  });
  const std::optional<Bytes> message = read_message(socket, -1);
  close(socket);
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (!message) return "backend cuda: the process that opened the device died";
  if (message->empty()) return std::nullopt;
  return std::string(message->begin(), message->end());
}

}  // namespace gaugeblock

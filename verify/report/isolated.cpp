#include "gaugeblock/verify/report/isolated.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>
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
          {"unjudged", v.unjudged},
          {"message", result.message},
          {"chosen", result.chosen}};
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
  v.unjudged = json.at("unjudged").get<std::vector<std::string>>();
  result.message = json.at("message");
  result.chosen = json.at("chosen");
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

struct Started {
  pid_t process;
  std::vector<int> sockets;  ///< the parent's ends
};

/// Starts a process that runs `body` on its ends of `count` sockets and ends.
template <class Body>
Started start_process(unsigned count, const Body& body) {
  Started started{};
  std::vector<int> own;  // the child's ends
  for (unsigned i = 0; i < count; ++i) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw DeviceFailure(fmt::format("cannot make a socket for a child process: {}", std::strerror(errno)));
    started.sockets.push_back(ends[0]);
    own.push_back(ends[1]);
  }
  started.process = fork();
  if (started.process < 0)
    throw DeviceFailure(fmt::format("cannot start a child process: {}", std::strerror(errno)));
  if (started.process == 0) {
    // Another child's socket kept open here would hide that child's end from the parent.
    std::sort(own.begin(), own.end());
    unsigned first = 3;
    for (const int socket : own) {
      const auto kept = static_cast<unsigned>(socket);
      if (kept > first) close_range(first, kept - 1, 0);
      first = kept + 1;
    }
    close_range(first, ~0U, 0);
    // Sent to the whole group they are for the parent to answer, which ends a child by closing its socket.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
    body(own);
    _exit(0);
  }
  for (const int socket : own) close(socket);
  return started;
}

int wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/// Answers requests until the parent closes its end.
void serve(const std::vector<Variant>& variants, int socket) {
  while (const std::optional<Bytes> message = read_message(socket, -1)) {
    try {
      const Json request = Json::from_cbor(*message);
      const Case c = parse_case(request.at("case").get<std::string>());
      std::vector<const Variant*> chosen;
      for (const std::size_t index : request.at("variants")) chosen.push_back(&variants[index]);
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
  close(socket);
}

}  // namespace

/// A process that is waited for.
class IsolatedChecker::Child {
 public:
  explicit Child(pid_t process) : process_(process) {}
  ~Child() { wait(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void kill() {
    killed_ = true;
    ::kill(process_, SIGKILL);
  }
  /// How it ended.
  std::string wait() {
    if (process_ < 0) return {};
    const int status = wait_for(std::exchange(process_, -1));
    if (killed_) return "it gave no answer in time";
    if (WIFSIGNALED(status))
      return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return fmt::format("exit code {}", WEXITSTATUS(status));
  }

 private:
  pid_t process_;
  std::atomic<bool> killed_ = false;
};

IsolatedChecker::IsolatedChecker(const std::vector<Variant>& variants, double patience_seconds)
    : variants_(variants), patience_seconds_(patience_seconds) {}

std::vector<IsolatedChecker> IsolatedChecker::several(const std::vector<Variant>& variants, unsigned jobs,
                                                      double patience_seconds) {
  const Started started = start_process(jobs, [&variants](const std::vector<int>& sockets) {
    std::vector<std::thread> threads;
    for (const int socket : sockets) threads.emplace_back([&variants, socket] { serve(variants, socket); });
    for (std::thread& thread : threads) thread.join();
  });
  const auto child = std::make_shared<Child>(started.process);
  std::vector<IsolatedChecker> checkers;
  for (const int socket : started.sockets) {
    IsolatedChecker checker(variants, patience_seconds);
    checker.child_ = child;
    checker.socket_ = socket;
    checker.is_shared_ = true;
    checkers.push_back(std::move(checker));
  }
  return checkers;
}

IsolatedChecker::~IsolatedChecker() {
  leave();
}

IsolatedChecker::IsolatedChecker(IsolatedChecker&& other) noexcept
    : variants_(other.variants_),
      patience_seconds_(other.patience_seconds_),
      child_(std::move(other.child_)),
      socket_(std::exchange(other.socket_, -1)),
      is_shared_(other.is_shared_) {}

void IsolatedChecker::start() {
  const Started started =
      start_process(1, [this](const std::vector<int>& sockets) { serve(variants_, sockets.front()); });
  child_ = std::make_shared<Child>(started.process);
  socket_ = started.sockets.front();
  is_shared_ = false;
}

std::string IsolatedChecker::leave() {
  if (!child_) return {};
  close(std::exchange(socket_, -1));  // its end of file tells the child to end
  std::string end;
  if (!is_shared_) end = child_->wait();
  child_.reset();
  return end;
}

std::vector<CaseVerdict> IsolatedChecker::check(const std::vector<const Variant*>& chosen, const Case& c,
                                                RelationEffort effort) {
  std::vector<CaseVerdict> results;
  while (results.size() < chosen.size()) {
    if (!child_) start();
    Json request{{"case", print_case(c)}, {"effort", static_cast<int>(effort)}, {"variants", Json::array()}};
    for (std::size_t i = results.size(); i < chosen.size(); ++i)
      request["variants"].push_back(chosen[i] - variants_.data());
    bool is_well = write_message(socket_, Json::to_cbor(request));
    while (is_well && results.size() < chosen.size()) {
      const std::optional<Bytes> message = read_message(socket_, static_cast<int>(1000 * patience_seconds_));
      if (!message) {
        is_well = false;
        break;
      }
      const Json answer = Json::from_cbor(*message);
      if (answer.contains("refused")) throw InputError(answer.at("refused").get<std::string>());
      if (answer.at("lost").get<bool>()) {
        // In a shared child the error may be another thread's.
        if (!is_shared_) results.push_back(verdict_from(answer));
        leave();
        break;
      }
      results.push_back(verdict_from(answer));
    }
    if (is_well) continue;
    // Either the child has ended, or it is silent.
    pollfd state{socket_, POLLIN, 0};
    if (poll(&state, 1, 0) == 0) child_->kill();
    const bool was_shared = is_shared_;
    const std::string end = leave();
    if (was_shared) continue;  // the same variant again, in a child of its own
    CaseVerdict died;
    died.verdict.outcome = Outcome::error;
    died.verdict.reason = "error";
    died.message = fmt::format("the process that ran it ended: {}", end);
    results.push_back(died);
  }
  return results;
}

std::optional<std::string> cuda_refusal() {
  const Started started = start_process(1, [](const std::vector<int>& sockets) {
    std::string reason;
    try {
      cuda_device();
    } catch (const std::exception& refusal) {
      reason = refusal.what();
    }
    write_message(sockets.front(), Bytes(reason.begin(), reason.end()));
  });
  const std::optional<Bytes> message = read_message(started.sockets.front(), -1);
  close(started.sockets.front());
  wait_for(started.process);
  if (!message) return "backend cuda: the process that opened the device died";
  if (message->empty()) return std::nullopt;
  return std::string(message->begin(), message->end());
}

}  // namespace gaugeblock

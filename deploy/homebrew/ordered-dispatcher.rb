# The formula for Homebrew. tools/distribute writes it with its version and checksums into dist, for a tap.
class OrderedDispatcher < Formula
  desc "Delivers the rows of PostgreSQL tables in order, with none missing"
  homepage "https://github.com/ordered-dispatcher/ordered-dispatcher"
  version "VERSION"
  license "Apache-2.0"

  base = "https://github.com/ordered-dispatcher/ordered-dispatcher/releases/download/v#{version}"
  on_macos do
    on_arm do
      url "#{base}/ordered-dispatcher_#{version}_darwin_arm64.tar.gz"
      sha256 "SHA256_darwin_arm64"
    end
    on_intel do
      url "#{base}/ordered-dispatcher_#{version}_darwin_amd64.tar.gz"
      sha256 "SHA256_darwin_amd64"
    end
  end
  on_linux do
    on_arm do
      url "#{base}/ordered-dispatcher_#{version}_linux_arm64.tar.gz"
      sha256 "SHA256_linux_arm64"
    end
    on_intel do
      url "#{base}/ordered-dispatcher_#{version}_linux_amd64.tar.gz"
      sha256 "SHA256_linux_amd64"
    end
  end

  def install
    bin.install "ordered-dispatcher"
    generate_completions_from_executable(bin/"ordered-dispatcher", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/ordered-dispatcher --version")
  end
end

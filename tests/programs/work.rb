# usage: work.rb SECONDS: computes for so long, in functions of several kinds
require 'zlib'

def hot(count)
  total = 0
  i = 0
  while i < count
    total += i * i
    i += 1
  end
  total
end

def fib(n)
  n < 2 ? n : fib(n - 1) + fib(n - 2)
end

class Sorter
  def sorted(count)
    (1..count).to_a.sort_by { |x| (x * 7919) % 1009 }
  end
end

def sliced(count)
  (1..count).each_slice(3).flat_map { |part| part.reverse }.size
end

def compress(text)
  Zlib::Deflate.deflate(text, 6)
end

def work(stop)
  text = 'abcdefghij0123456789' * 2000
  while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < stop
    hot(9000)
    fib(14)
    Sorter.new.sorted(1500)
    sliced(1500)
    compress(text)
  end
end

other = Thread.new { work(ARGV[0].to_f) }
work(ARGV[0].to_f)
other.join

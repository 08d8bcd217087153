<?php
// usage: work.php SECONDS: computes for so long, in functions of several kinds
function hot($count)
{
    $total = 0;
    for ($i = 0; $i < $count; $i++) {
        $total += $i * $i;
    }
    return $total;
}

function fib($n)
{
    return $n < 2 ? $n : fib($n - 1) + fib($n - 2);
}

class Sorter
{
    public static function compare($a, $b)
    {
        return $a % 97 - $b % 97;
    }

    public function sorted($count)
    {
        $numbers = range(1, $count);
        usort($numbers, ['Sorter', 'compare']);
        return $numbers;
    }
}

function work($seconds)
{
    $sorter = new Sorter();
    $end = microtime(true) + $seconds;
    while (microtime(true) < $end) {
        hot(9000);
        fib(14);
        $sorter->sorted(1500);
    }
}

work((float) $argv[1]);

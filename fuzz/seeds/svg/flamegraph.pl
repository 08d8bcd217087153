<?xml version="1.0" standalone="no"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg version="1.1" width="1200" height="150" onload="init(evt)" viewBox="0 0 1200 150" xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">
<!-- Flame graph stack visualization. See https://github.com/brendangregg/FlameGraph for latest version, and http://www.brendangregg.com/flamegraphs.html for examples. -->
<!-- NOTES:  -->
<defs>
	<linearGradient id="background" y1="0" y2="1" x1="0" x2="0" >
		<stop stop-color="#eeeeee" offset="5%" />
		<stop stop-color="#eeeeb0" offset="95%" />
	</linearGradient>
</defs>
<style type="text/css">
	text { font-family:Verdana; font-size:12px; fill:rgb(0,0,0); }
	#search, #ignorecase { opacity:0.1; cursor:pointer; }
	#search:hover, #search.show, #ignorecase:hover, #ignorecase.show { opacity:1; }
	#subtitle { text-anchor:middle; font-color:rgb(160,160,160); }
	#title { text-anchor:middle; font-size:17px}
	#unzoom { cursor:pointer; }
	#frames > *:hover { stroke:black; stroke-width:0.5; cursor:pointer; }
	.hide { display:none; }
	.parent { opacity:0.5; }
</style>
<rect x="0.0" y="0" width="1200.0" height="150.0" fill="url(#background)"  />
<text id="title" x="600.00" y="24" >Flame Graph</text>
<text id="details" x="10.00" y="133" > </text>
<text id="unzoom" x="10.00" y="24" class="hide">Reset Zoom</text>
<text id="search" x="1090.00" y="24" >Search</text>
<text id="ignorecase" x="1174.00" y="24" >ic</text>
<text id="matched" x="1090.00" y="133" > </text>
<g id="frames">
<g >
<title>x (400 samples, 34.45%)</title><rect x="783.5" y="85" width="406.5" height="15.0" fill="rgb(238,153,36)" rx="2" ry="2" />
<text  x="786.45" y="95.5" >x</text>
</g>
<g >
<title>g() (400 samples, 34.45%)</title><rect x="783.5" y="53" width="406.5" height="15.0" fill="rgb(224,91,21)" rx="2" ry="2" />
<text  x="786.45" y="63.5" >g()</text>
</g>
<g >
<title>Lorg/x (250 samples, 21.53%)</title><rect x="223.4" y="53" width="254.1" height="15.0" fill="rgb(224,91,21)" rx="2" ry="2" />
<text  x="226.44" y="63.5" >Lorg/x</text>
</g>
<g >
<title>java (671 samples, 57.80%)</title><rect x="101.5" y="85" width="682.0" height="15.0" fill="rgb(213,38,9)" rx="2" ry="2" />
<text  x="104.47" y="95.5" >java</text>
</g>
<g >
<title>all (1,161 samples, 100%)</title><rect x="10.0" y="101" width="1180.0" height="15.0" fill="rgb(213,39,9)" rx="2" ry="2" />
<text  x="13.00" y="111.5" ></text>
</g>
<g >
<title>a&lt;b&gt; (370 samples, 31.87%)</title><rect x="101.5" y="69" width="376.0" height="15.0" fill="rgb(215,49,11)" rx="2" ry="2" />
<text  x="104.47" y="79.5" >a&lt;b&gt;</text>
</g>
<g >
<title>d &quot;q&quot; &amp; e (300 samples, 25.84%)</title><rect x="477.5" y="69" width="304.9" height="15.0" fill="rgb(236,145,34)" rx="2" ry="2" />
<text  x="480.53" y="79.5" >d "q" &amp; e</text>
</g>
<g >
<title>idle (90 samples, 7.75%)</title><rect x="10.0" y="85" width="91.5" height="15.0" fill="rgb(239,157,37)" rx="2" ry="2" />
<text  x="13.00" y="95.5" >idle</text>
</g>
<g >
<title>f (3 samples, 1.00%) (400 samples, 34.45%)</title><rect x="783.5" y="69" width="406.5" height="15.0" fill="rgb(234,135,32)" rx="2" ry="2" />
<text  x="786.45" y="79.5" >f (3 samples, 1.00%)</text>
</g>
<g >
<title>java (300 samples, 25.84%)</title><rect x="477.5" y="53" width="304.9" height="15.0" fill="rgb(213,38,9)" rx="2" ry="2" />
<text  x="480.53" y="63.5" >java</text>
</g>
<g >
<title>narrow (1 samples, 0.09%)</title><rect x="782.4" y="69" width="1.1" height="15.0" fill="rgb(217,58,13)" rx="2" ry="2" />
<text  x="785.44" y="79.5" ></text>
</g>
<g >
<title>.f (250 samples, 21.53%)</title><rect x="223.4" y="37" width="254.1" height="15.0" fill="rgb(220,70,16)" rx="2" ry="2" />
<text  x="226.44" y="47.5" >.f</text>
</g>
</g>
</svg>

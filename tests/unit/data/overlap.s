	.text
	.globl outer
	.type outer,@function
outer:
	.fill 32,1,0x90
	.globl inner_label
inner_label:
	.fill 32,1,0x90
	.globl nested
	.type nested,@function
nested:
	.fill 16,1,0x90
	.size nested,16
	.fill 48,1,0x90
	.size outer,128
	.globl alias_long_name, alias
	.type alias,@function
	.type alias_long_name,@function
alias:
alias_long_name:
	.fill 16,1,0x90
	.size alias,16
	.size alias_long_name,16
	.weak weak_twin
	.globl __strong_twin
	.type weak_twin,@function
	.type __strong_twin,@function
weak_twin:
__strong_twin:
	.fill 24,1,0x90
	.size weak_twin,24
	.size __strong_twin,24
	.type unsized,@function
unsized:
	.fill 40,1,0x90
	.globl _ZN3FooC1Ev, _ZN3FooC2Ev
	.type _ZN3FooC1Ev,@function
	.type _ZN3FooC2Ev,@function
_ZN3FooC1Ev:
_ZN3FooC2Ev:
	.fill 16,1,0x90
	.size _ZN3FooC1Ev,16
	.size _ZN3FooC2Ev,16
	.hidden hidden_label
	.globl hidden_label
hidden_label:
	.fill 16,1,0x90
	.globl tail
	.type tail,@function
tail:
	call external@PLT
	call _Z8externalv@PLT
	.fill 8,1,0x90
	.size tail,200
	.section .text.other,"ax"
	.globl other
other:
	.fill 64,1,0x90
	.data
	.globl some_data
	.type some_data,@object
some_data:
	.quad 1,2,3
	.size some_data,24

"""The Objective-C++ host functions of a stack: compiled as their tree would, and executed where there is no Mac."""

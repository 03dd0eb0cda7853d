"""Kernels of trees and other examples, and machines that learn with them."""
